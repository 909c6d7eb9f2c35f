/** The images that go with the next question: pasted into it, or chosen as files. */

import { button, find, make } from "./elements.js";
import { label } from "./texts.js";

const MOST = 4, LONGEST_SIDE = 1600;

export const picture = (url) => Object.assign(label(make("img", "picture"), "image"), { src: url });

/** A question as the service stores it. */
export const described = (question, { length }) => question + (length ? `\n[${length > 1 ? `${length} images` : "image"} left out]` : "");

/** Drawn anew: no larger than models look at, and without what a camera writes beside it, such as the place. */
async function dataUrlOf(file) {
  const image = await createImageBitmap(file);
  const scale = Math.min(1, LONGEST_SIDE / Math.max(image.width, image.height));
  const canvas = Object.assign(make("canvas"), { width: Math.ceil(image.width * scale), height: Math.ceil(image.height * scale) });
  const drawing = canvas.getContext("2d");
  drawing.fillStyle = "white"; // JPEG has no transparency
  drawing.fillRect(0, 0, canvas.width, canvas.height);
  drawing.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.85);
}

export class Images {
  constructor(onChange) {
    this.onChange = onChange;
    const chosen = find("image-files");
    find("add-image").hidden = false;
    find("add-image").addEventListener("click", () => chosen.click());
    chosen.addEventListener("change", () => { this.added = this.#add(chosen.files); chosen.value = ""; });
    find("message").addEventListener("paste", (event) => {
      const { files, types } = event.clipboardData;
      if (!files.length || types.includes("text/plain")) return; // a text may bring a picture of itself
      event.preventDefault();
      this.added = this.#add(files); // all before them, too
    });
    this.show([]);
  }

  /** Shows these instead of those before, and whether others could not be added. */
  show(urls, isFault = false) {
    this.urls = urls;
    const without = (at) => { this.show(urls.toSpliced(at, 1)); find("message").focus(); };
    find("images").replaceChildren(...urls.map((url, at) => make("span", "", picture(url), button("plain-button", "removeImage", () => without(at)))));
    find("images").hidden = !urls.length;
    find("image-fault").hidden = !isFault;
    this.onChange(urls.length > 0);
  }

  async #add([...files]) {
    await this.added;
    const read = await Promise.all(files.slice(0, MOST - this.urls.length).map((file) => dataUrlOf(file).catch(() => "")));
    const found = read.filter(Boolean);
    this.show([...this.urls, ...found], found.length < files.length);
  }
}
