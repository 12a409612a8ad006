const POLL_MS = 10_000;

const element = (id) => document.getElementById(id);
/** The shown items by id, newest first, and the token of the next older page. */
let items = new Map();
let pageToken;
/** Time of the newest answer, for "Mark all as read": what comes later stays unread. */
let asOf = 0;

async function api(path, body) {
  const options = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(`/api/${path}`, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

/** Shows the reason of a failure in place of an exception that nobody sees. */
const shown = async (work) => {
  try {
    await work();
    element('status').textContent = '';
  } catch (error) {
    element('status').textContent = error.message;
  }
};

function showCount({ count, more }) {
  const badge = element('badge');
  const isShown = count > 0 || more;
  badge.hidden = !isShown;
  // More than can be counted: a plus sign, and without a number a dot.
  badge.textContent = count > 0 ? `${count}${more ? '+' : ''}` : '';
  const unread = count > 0 ? `${more ? 'at least ' : ''}${count} unread` : more ? 'some unread' : 'none unread';
  element('bell').setAttribute('aria-label', `Notifications, ${unread}`);
  // Read to the reader of a screen when it changes, and only then.
  if (element('unread').textContent !== unread) element('unread').textContent = unread;
}

/** The template names its data in braces. A value may be a user. Data without a place in the template is not shown. */
function headlineOf({ displayHeadlineMessageTemplate, displayHeadlineMessageTemplateData = {}, actionUser }) {
  const data = { actionUser, ...displayHeadlineMessageTemplateData };
  return displayHeadlineMessageTemplate.replace(/\{([^{}]+)\}/g, (all, name) => {
    const value = Object.hasOwn(data, name) ? data[name] : undefined;
    return typeof value === 'object' ? value?.name || value?.userId || all : (value ?? all);
  });
}

function rowOf(item) {
  const row = document.createElement('li');
  row.className = item.read ? '' : 'unread';
  const text = document.createElement('div');
  const [headline, body, time, mark] = ['p', 'p', 'time', 'button'].map((name) => document.createElement(name));
  // textContent: the content may be HTML, and must not become it.
  headline.textContent = headlineOf(item);
  body.textContent = item.displayBodyMessage ?? '';
  const stored = new Date(item.timestamp);
  time.dateTime = stored.toISOString();
  time.textContent = stored.toLocaleString();
  text.append(headline, body, time);
  mark.type = 'button';
  mark.dataset.id = item.id;
  mark.textContent = item.read ? 'Mark as unread' : 'Mark as read';
  mark.setAttribute('aria-label', `${mark.textContent}: ${headline.textContent}`);
  mark.addEventListener('click', () => shown(() => markOne(item)));
  row.append(text, mark);
  return row;
}

/** The rows are new ones, and a button may be gone: the keyboard goes on where it was. */
function focusOn(id) {
  const button = element('list').querySelector(`[data-id="${CSS.escape(id)}"]`);
  (button ?? element('mark-all')).focus();
}

function showList() {
  const focused = document.activeElement?.dataset.id;
  element('list').replaceChildren(...[...items.values()].map(rowOf));
  if (focused) focusOn(focused);
  element('older').hidden = pageToken === undefined;
  element('empty').hidden = items.size > 0 || pageToken !== undefined;
}

/** The newest page, in place of everything that is shown: newcomers come in, and what was deleted goes. */
async function showNewest() {
  const page = await api('inbox');
  items = new Map(page.data.map((item) => [item.id, item]));
  ({ pageToken, asOf } = page);
  showCount(page.unread);
  showList();
}

async function showOlder() {
  const page = await api(`inbox?${new URLSearchParams({ pageToken })}`);
  for (const item of page.data) items.set(item.id, item);
  pageToken = page.pageToken;
  showList();
  // A page may be empty, and have a token for more: then the reader stays at the button.
  if (page.data.length > 0 || pageToken === undefined) focusOn(page.data[0]?.id ?? [...items.keys()].at(-1) ?? '');
}

async function markOne({ id, read }) {
  await api('mark', { id, read: !read });
  const item = items.get(id);
  if (item) items.set(id, { ...item, read: !read });
  showList();
  showCount((await api('count')).unread);
}

async function markAll() {
  await api('mark-all', { upTo: asOf });
  await showNewest();
}

/** A hidden page asks nothing. An open list keeps its place: only the number moves, and the list when the reader is at its top. */
async function poll() {
  if (document.hidden) return;
  if (!element('panel').hidden && window.scrollY === 0 && items.size <= 10) await showNewest();
  else showCount((await api('count')).unread);
}

element('bell').addEventListener('click', () => {
  const panel = element('panel');
  panel.hidden = !panel.hidden;
  element('bell').setAttribute('aria-expanded', String(!panel.hidden));
  if (!panel.hidden) void shown(showNewest);
});
element('older').addEventListener('click', () => shown(showOlder));
element('mark-all').addEventListener('click', () => shown(markAll));
document.addEventListener('visibilitychange', () => shown(poll));
setInterval(() => shown(poll), POLL_MS);
void shown(poll);
