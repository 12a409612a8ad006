// Replaces the parts of the page that change, every 2 s. Without this script the page works, and is as old as its last load.
const EVERY_MS = 2000;
const pause = document.getElementById('pause');
const stale = document.getElementById('stale');
let paused = false;

const isSelected = (part) => !document.getSelection()?.isCollapsed && part.contains(document.getSelection().anchorNode);

// The element with the focus stays: a part with parts in it changes only when these are other ones.
const partsIn = (part) => [...part.querySelectorAll('[data-live]')].map(({ id }) => id).join();
const isOutOfDate = (part, next) => (partsIn(part) === '' ? next.innerHTML !== part.innerHTML : partsIn(next) !== partsIn(part));

async function refresh() {
  if (paused || document.hidden) return;
  try {
    const response = await fetch(location.href, { signal: AbortSignal.timeout(5000), redirect: 'error' });
    if (response.status === 401) return location.assign('/sign-in');
    if (!response.ok) throw new Error(String(response.status));
    const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
    for (const part of document.querySelectorAll('[data-live]')) {
      const next = fresh.getElementById(part.id);
      if (next && !isSelected(part) && isOutOfDate(part, next)) part.replaceChildren(...next.childNodes);
    }
    stale.hidden = true;
  } catch {
    stale.hidden = false;
  }
}

if (pause) {
  pause.hidden = false;
  pause.addEventListener('click', () => {
    paused = !paused;
    pause.textContent = paused ? 'Resume updates' : 'Pause updates';
  });
  const loop = () => refresh().finally(() => setTimeout(loop, EVERY_MS));
  setTimeout(loop, EVERY_MS);
}

for (const box of document.querySelectorAll('input[data-all]')) {
  box.addEventListener('change', () => {
    for (const one of box.form.querySelectorAll('input[type=checkbox]')) one.checked = box.checked;
  });
}
