/** Swagger UI, for the document that lies beside this page, whatever path a proxy puts above both. */

// It brings colours for the dark, and leaves it to the page to ask for them.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

addEventListener("DOMContentLoaded", () => {
  SwaggerUIBundle({
    url: "openapi.json",
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
