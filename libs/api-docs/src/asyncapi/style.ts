/** The style of the page about messages. */
export const MESSAGES_STYLE = `:root { color-scheme: light dark; --line: light-dark(#d8dee4, #3d444d); --soft: light-dark(#f3f5f7, #1c2128); }
* { box-sizing: border-box; }
html { scroll-padding-top: 3.5rem; }
body { margin: 0; background: light-dark(#fff, #121212); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
nav { position: sticky; top: 0; display: flex; gap: 1.5rem; padding: 0.75rem 1rem; background: Canvas; border-bottom: 1px solid var(--line); }
main { max-width: 64rem; margin: 0 auto; padding: 0 1rem 4rem; }
h1, h2, h3, h4 { line-height: 1.25; margin: 1.5em 0 0.5em; }
h2.part { margin-top: 3rem; padding-top: 1rem; border-top: 3px solid var(--line); }
h3 a { color: inherit; text-decoration: none; }
h3 code { background: none; padding: 0; font-size: 1.1em; font-weight: 700; }
article { margin: 2rem 0; padding: 0 1rem 1rem; border: 1px solid var(--line); border-radius: 6px; }
.reply { border-top: 1px solid var(--line); padding-top: 1rem; font-size: 1.2em; }
small { font-weight: normal; opacity: 0.75; }
code, pre { font: 0.875em/1.5 ui-monospace, monospace; }
code { background: var(--soft); padding: 0.1em 0.3em; border-radius: 4px; }
pre { background: var(--soft); padding: 0.75rem; border-radius: 6px; overflow: auto; max-height: 30rem; overflow-wrap: normal; }
dl div { display: flex; flex-wrap: wrap; gap: 0 1rem; padding: 0.2rem 0; }
dt { flex: 0 0 12rem; font-weight: 600; }
dd { flex: 1 1 14rem; margin: 0; }
summary { cursor: pointer; margin: 1rem 0 0.5rem; font-weight: 600; }
table { width: 100%; border-collapse: collapse; font-size: 0.9375em; }
th, td { padding: 0.4rem 0.75rem 0.4rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { white-space: nowrap; }
td:nth-child(1) { width: 32%; }
td:nth-child(2) { width: 25%; }
.contents td:nth-child(1) { width: 24%; }
.contents td:nth-child(2) { width: 16%; }
@media (max-width: 44rem) {
  nav { position: static; flex-wrap: wrap; gap: 0.25rem 1.5rem; }
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { padding: 0.5rem 0; border-bottom: 1px solid var(--line); }
  td, td:nth-child(n) { width: auto; border: 0; padding: 0.1rem 0; }
  td:empty { display: none; }
  td:nth-child(n + 2)::before { content: attr(data-column) ': '; font-weight: 600; }
  article { padding: 0 0.75rem 0.75rem; }
}
@media print { nav { position: static; } pre { max-height: none; } }
`;
