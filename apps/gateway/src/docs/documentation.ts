import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { PROJECT_ROOT } from '@app/runtime/project-root';
import { JSON_TYPE } from '../server/envelope';

const SCRIPT_TYPE = 'text/javascript; charset=utf-8';
const HTML_TYPE = 'text/html; charset=utf-8';
const CSS_TYPE = 'text/css; charset=utf-8';

/** Files of Swagger UI, from the package itself: the page works without the internet. */
const ASSETS = {
  'swagger-ui.css': CSS_TYPE,
  'swagger-ui-bundle.js': SCRIPT_TYPE,
  'favicon-32x32.png': 'image/png',
};

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>Collaboration backend API</title>
    <link rel="icon" type="image/png" href="/docs/favicon-32x32.png" />
    <link rel="stylesheet" href="/docs/swagger-ui.css" />
    <link rel="stylesheet" href="/docs/page.css" />
  </head>
  <body>
    <nav><b>HTTP API</b> &emsp; <a href="/docs/messages">Messages</a></nav>
    <div id="swagger-ui"></div>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`;

const START = `const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();

SwaggerUIBundle({
  dom_id: '#swagger-ui',
  url: '/openapi.json',
  deepLinking: true,
  displayRequestDuration: true,
  // A token would stay in the storage of the browser.
  persistAuthorization: false,
  tryItOutEnabled: true,
  // The default calls a server on the internet.
  validatorUrl: null,
});
`;

/**
 * Long words and tables of Swagger UI are wider than a phone, and its light colours have too little contrast for WCAG 2.2 AA. There is one server
 * to choose from.
 */
const STYLE = `nav {
  padding: 0.75rem 1rem;
  font: 16px system-ui, sans-serif;
}
.swagger-ui .scheme-container .schemes .schemes-server-container {
  display: none;
}
.swagger-ui .info .title small {
  background: #4d5361;
}
.swagger-ui .info .title small.version-stamp {
  background: #1d632e;
}
html:not(.dark-mode) .swagger-ui .opblock.opblock-post .opblock-summary-method {
  background: #14754a;
}
html:not(.dark-mode) .swagger-ui .btn.authorize,
html:not(.dark-mode) .swagger-ui .btn.authorize svg {
  border-color: #14754a;
  color: #14754a;
}
html:not(.dark-mode) .swagger-ui .info .url,
html:not(.dark-mode) .swagger-ui a.link {
  color: #1e62b0;
}
html:not(.dark-mode) .swagger-ui .json-schema-2020-12-expand-deep-button {
  color: #505050;
}
html.dark-mode nav,
html.dark-mode nav a {
  color: #e4e6e6;
}
.swagger-ui .opblock .opblock-summary-path a {
  display: inline-block;
  min-height: 24px;
}
@media (max-width: 640px) {
  .swagger-ui .wrapper,
  .swagger-ui .opblock-body {
    padding: 0 8px;
    overflow-x: auto;
  }
  .swagger-ui .opblock .opblock-summary-path {
    max-width: none;
    word-break: break-word;
  }
}
`;

const NO_SNIFFING = { 'x-content-type-options': 'nosniff' };
const CACHED = { 'cache-control': 'max-age=3600' };

/** Swagger UI uses inline styles, and its icons are data URLs. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** `npm run docs:generate` writes the documents; CI fails if they are outdated. */
const generated = (file: string) => readFileSync(join(PROJECT_ROOT, file));

/** Serves the documents at `/openapi.json` and `/asyncapi.json`, Swagger UI at `/docs` and the messages at `/docs/messages`, without credentials. */
export function serveDocumentation(fastify: FastifyInstance): void {
  const serve = (path: string, type: string, content: string | Buffer, headers: Record<string, string> = {}) =>
    fastify.get(path, { config: { public: true } }, (_request, reply) =>
      reply
        .headers({ ...NO_SNIFFING, ...headers })
        .type(type)
        .send(content),
    );

  serve('/openapi.json', JSON_TYPE, generated('openapi.json'));
  serve('/asyncapi.json', JSON_TYPE, generated('asyncapi.json'));
  const pages = { '/docs': PAGE, '/docs/': PAGE, '/docs/messages': generated('docs/messages.html') };
  for (const [path, page] of Object.entries(pages)) {
    serve(path, HTML_TYPE, page, { 'content-security-policy': CONTENT_SECURITY_POLICY });
  }
  serve('/docs/start.js', SCRIPT_TYPE, START);
  serve('/docs/page.css', CSS_TYPE, STYLE);
  for (const [name, type] of Object.entries(ASSETS)) {
    const content = readFileSync(require.resolve(`swagger-ui-dist/${name}`));
    serve(`/docs/${name}`, type, content, CACHED);
  }
}
