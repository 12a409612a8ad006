import { time } from './format';
import { html, type Html, type Part } from './html';

export interface Page {
  title: string;
  /** Path of the current page, marked in the navigation. */
  path: string;
  /** Name of the signed-in operator; absent before the sign-in. */
  operator?: string;
  body: Part;
  /** Whether the script fetches the page again every 2 s, and replaces the parts with {@link live}. */
  isLive?: boolean;
  /** Token of the form that signs out. */
  form?: Html;
}

const PLACES = [
  ['/', 'Overview'],
  ['/queues', 'Queues'],
  ['/work', 'Work'],
  ['/letters', 'Dead letters'],
  ['/keys', 'API keys'],
  ['/audit', 'Audit'],
] as const;

/** The whole document. */
export function layout({ title, path, operator, body, isLive, form }: Page): string {
  const isAt = (place: string) => (place === '/' ? path === '/' : path.startsWith(place));
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} - operator's page</title>
        <link rel="icon" href="/icon.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="/page.css" />
        <script src="/page.js" defer></script>
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header>
          <span class="name">Operator's page</span>
          ${
            operator !== undefined && [
              html`<nav aria-label="Pages">
                <ul>
                  ${PLACES.map(
                    ([place, name]) =>
                      html`<li>
                        ${isAt(place) ? html`<a href="${place}" aria-current="page">${name}</a>` : html`<a href="${place}">${name}</a>`}
                      </li>`,
                  )}
                </ul>
              </nav>`,
              html`<form class="session" method="post" action="/sign-out">
                ${form}<span>${operator}</span> <button>Sign out</button>
              </form>`,
            ]
          }
        </header>
        <main id="main" tabindex="-1">
          <div class="title">
            <h1>${title}</h1>
            ${operator !== undefined && live('as-of', html`<span class="quiet">As of ${time(new Date())}</span>`)}
            ${isLive && html`<button type="button" id="pause" hidden>Pause updates</button>`}
          </div>
          <div role="status"><p id="stale" class="problem"></p></div>
          ${body}
        </main>
      </body>
    </html>`;
  return page.text;
}

/** A part that the script replaces. An element that can have the focus is outside of it, or is itself around such parts. */
export const live = (id: string, body: Part): Html => html`<div id="${id}" data-live>${body}</div>`;

/** Such a part whose changes are read to the reader of a screen: it is short, and changes seldom. */
export const liveStatus = (id: string, body: Part): Html => html`<div id="${id}" data-live role="status">${body}</div>`;
