// Replaces the parts of the page that change, every 2 s. Without this script the page works, and is as old as its last load.
const EVERY_MS = 2000;
/** Pages of this tab do not update themselves until the reader says so. */
const PAUSED = 'paused';
const pause = document.getElementById('pause');
const stale = document.getElementById('stale');
let paused = sessionStorage.getItem(PAUSED) !== null;

/** Why the page is older than it looks; a text that is there already is not read to the reader again. */
function showProblem(text) {
  if (stale.textContent !== text) stale.textContent = text;
}

const parts = () => [...document.querySelectorAll('[data-live]')];
function isSelecting() {
  const { isCollapsed, anchorNode } = document.getSelection();
  return !isCollapsed && parts().some((part) => part.contains(anchorNode));
}

// The element with the focus stays: a part with parts in it changes only when these are other ones.
const partsIn = (part) => [...part.querySelectorAll('[data-live]')].map(({ id }) => id).join();
const isOutOfDate = (part, next) => (partsIn(part) === '' ? next.innerHTML !== part.innerHTML : partsIn(next) !== partsIn(part));

async function refresh() {
  if (paused || document.hidden) return;
  if (isSelecting()) return showProblem('Updates wait while a text of this page is selected.');
  try {
    const response = await fetch(location.href, { signal: AbortSignal.timeout(5000), redirect: 'error' });
    if (response.status === 401) return location.assign(`/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`);
    if (!response.ok) throw new Error(String(response.status));
    const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
    for (const part of parts()) {
      const next = fresh.getElementById(part.id);
      if (next && isOutOfDate(part, next)) part.replaceChildren(...next.childNodes);
    }
    showProblem('');
  } catch {
    showProblem("This page could not be updated: the operator's process does not answer.");
  }
}

if (pause) {
  const show = () => (pause.textContent = paused ? 'Resume updates' : 'Pause updates');
  show();
  pause.hidden = false;
  pause.addEventListener('click', () => {
    paused = !paused;
    if (paused) sessionStorage.setItem(PAUSED, 'yes');
    else sessionStorage.removeItem(PAUSED);
    show();
  });
  const loop = () => refresh().finally(() => setTimeout(loop, EVERY_MS));
  setTimeout(loop, EVERY_MS);
}

for (const box of document.querySelectorAll('input[data-all]')) {
  box.hidden = false;
  box.addEventListener('change', () => {
    for (const one of box.form.querySelectorAll('input[type=checkbox]')) one.checked = box.checked;
  });
}
