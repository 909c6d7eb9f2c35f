/** Swagger UI, for the document that lies beside this page, whatever path a proxy puts above both. */

// It brings colours for the dark, and leaves it to the page to ask for them.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

/** Leave operations out that would only lengthen the list: the server marks them. */
const shorten = (response) => {
  if (!response.url.endsWith("openapi.json") || !response.ok) return response;
  const document = JSON.parse(response.text, (_, value) => (value?.["x-hidden"] ? undefined : value));
  return Object.assign(response, { text: JSON.stringify(document) });
};

addEventListener("DOMContentLoaded", () => {
  SwaggerUIBundle({
    url: "openapi.json",
    responseInterceptor: shorten,
    dom_id: "#swagger-ui",
    layout: "BaseLayout",
    presets: [SwaggerUIBundle.presets.apis],
    deepLinking: true,
    showExtensions: true,
    showCommonExtensions: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
  });
});
