// The service worker, in a minimal fake browser.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';
import vm from 'node:vm';

const source = await readFile(new URL('../../app/sw.js', import.meta.url), 'utf8');

/** The path below which the server is. */
let base = '';

/** An open page. `present` is its answer, or undefined if the page does not answer. */
const page = (path, { visible = true, present } = {}) => ({
  url: `https://confab.example${base}${path}`, visibilityState: visible ? 'visible' : 'hidden', reported: [], focused: 0, outwait() {},
  postMessage(message, ports) {
    this.reported.push(message);
    if (message.type !== 'rings') return;
    if (present === undefined) this.outwait();
    else ports[0].postMessage(present);
  },
  async focus() { this.focused += 1; },
});

/** A service worker, the notifications that it shows, and the windows that it opens. */
function start(pages = []) {
  const listeners = {};
  const shown = new Map();
  const opened = [];
  const self = {
    navigator: { languages: ['en'] }, location: new URL(`https://confab.example${base}/sw.js`),
    addEventListener: (type, listener) => { listeners[type] = listener; },
    registration: {
      showNotification: async (title, options) => {
        shown.set(options.tag, options.body);
        assert.equal(options.icon, `${base}/app/favicon.svg`);
      },
      getNotifications: async ({ tag }) => (shown.has(tag) ? [{ close: () => shown.delete(tag) }] : []),
    },
    clients: { matchAll: async () => pages, openWindow: async (url) => { opened.push(url); } },
  };
  // The worker's timeout expires at once, because time passes only while a page does not answer.
  let due = () => {};
  const timer = (run) => { due = run; };
  for (const each of pages) each.outwait = () => due();
  vm.runInNewContext(source, { self, URL, MessageChannel, setTimeout: timer, clearTimeout() {}, encodeURIComponent });
  const tell = async (type, members) => {
    let done;
    listeners[type]({ waitUntil: (promise) => { done = promise; }, ...members });
    await done;
  };
  return {
    shown, opened,
    push: (kind) => tell('push', { data: { json: () => ({ type: 'call', callId: 'c1', kind }) } }),
    click: (guest) => tell('notificationclick', { notification: { close() {}, data: { callId: 'c1', guest } } }),
  };
}

test('a push is shown unless a visible page rings', async () => {
  const cases = [
    [[], true], [[page('/nearby', { visible: false, present: true })], true], [[page('/')], true],
    [[page('/nearby?guest=1', { present: true })], true], [[page('/nearby', { present: false })], true], [[page('/nearby')], true],
    [[page('/nearby', { present: false }), page('/nearby', { present: true })], false],
  ];
  for (const [pages, expected] of cases) {
    const worker = start(pages);
    await worker.push('incoming');
    assert.equal(worker.shown.has('c1'), expected, pages.map(({ url }) => url).join());
  }
});

test('the notification of a call that has ended is removed, even if a visible page shows everything else', async () => {
  const looked = [];
  const worker = start(looked);
  await worker.push('incoming');
  assert.match(worker.shown.get('c1'), /Incoming call/);
  await worker.push('missed');
  assert.match(worker.shown.get('c1'), /missed/);
  await worker.push('incoming');
  looked.push(page('/nearby', { present: true }));
  await worker.push('over');
  assert.equal(worker.shown.size, 0);
});

test('a notification opens the person’s page, never a guest’s, and names the call', async () => {
  const worker = start([page('/nearby?guest=1')]);
  await worker.click();
  assert.deepEqual(worker.opened, ['/nearby#call=c1']);
  const [open, guest] = [page('/nearby'), page('/nearby?guest=1')];
  await start([open, guest]).click(true);
  assert.deepEqual([open.focused, guest.focused], [0, 1]);
  await start([open]).click();
  assert.deepEqual(JSON.parse(JSON.stringify([open.reported, open.focused])), [[{ type: 'call', callId: 'c1' }], 1]);
});

test('a page of people nearby at / counts, and the front page does not', async () => {
  const worker = start([page('/', { present: true })]);
  await worker.push('incoming');
  assert.equal(worker.shown.size, 0);
  const [front, nearby] = [page('/'), page('/', { present: false })];
  const other = start([front, nearby]);
  await other.click();
  assert.deepEqual([front.focused, nearby.focused, other.opened], [0, 1, []]);
  const third = start([page('/')]);
  await third.click();
  assert.deepEqual(third.opened, ['/nearby#call=c1']);
});

test('below a path, the worker looks for pages there and opens one there', async (t) => {
  base = '/some/video';
  t.after(() => { base = ''; });
  const worker = start([page('/nearby', { present: true })]);
  await worker.push('incoming');
  assert.equal(worker.shown.size, 0, 'the page rings itself');
  const other = start([{ ...page(''), url: 'https://confab.example/nearby' }]);
  await other.push('incoming');
  await other.click();
  assert.deepEqual([other.shown.size, other.opened], [1, ['/some/video/nearby#call=c1']]);
});
