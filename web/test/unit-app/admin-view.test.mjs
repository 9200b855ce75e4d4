// What the operator's page draws for a busy server.
import assert from 'node:assert/strict';
import test from 'node:test';

/** An element with what the view uses. */
class Element {
  dataset = {};
  children = [];
  parent = null;
  hidden = false;
  scrolls = 0;
  #attributes = new Map();
  #text = '';

  get textContent() { return this.#text + this.children.map(({ textContent }) => textContent).join(''); }
  set textContent(text) { this.replaceChildren(); this.#text = text; }
  getAttribute(name) { return this.#attributes.get(name) ?? null; }
  setAttribute(name, value) { this.#attributes.set(name, value); }
  removeAttribute(name) { this.#attributes.delete(name); }
  addEventListener() {}
  append(...added) { for (const child of added) this.insertBefore(child, null); }
  appendChild(child) { this.append(child); return child; }
  insertBefore(child, next) {
    if (typeof child === 'string') child = Object.assign(new Element(), { textContent: child });
    child.remove();
    child.parent = this;
    this.children.splice(next ? this.children.indexOf(next) : this.children.length, 0, child);
  }
  remove() {
    if (this.parent) this.parent.children.splice(this.parent.children.indexOf(this), 1);
    this.parent = null;
  }
  replaceChildren(...added) {
    for (const child of [...this.children]) child.remove();
    this.append(...added);
  }
  contains() { return false; }
  querySelector() { return null; }
  focus() {}
  scrollIntoView(how) { [this.scrolls, this.scrolled] = [this.scrolls + 1, how]; }
  get size() { return this.children.reduce((sum, child) => sum + child.size, 1); }
}
class Button extends Element {}
class Input extends Element {}
class Dialog extends Element {
  open = false;
  showModal() { this.open = true; }
  close() { this.open = false; }
}

const page = new Map();
Object.assign(globalThis, {
  HTMLElement: Element, HTMLButtonElement: Button, HTMLInputElement: Input, HTMLSelectElement: class extends Element {}, HTMLDialogElement: Dialog,
  document: {
    activeElement: null,
    baseURI: 'http://localhost/admin',
    createElement: () => new Element(),
    createElementNS: () => new Element(),
    getElementById: (id) => {
      const Kind = /^(tab-|enter|lock|page-(previous|next)|question-(yes|no))/.test(id) ? Button
        : /^(token|show-closed)$/.test(id) ? Input : id === 'question' ? Dialog : Element;
      if (!page.has(id)) page.set(id, new Kind());
      return page.get(id);
    },
  },
});

const { initial, step } = await import('../../app/admin/state.js');
const { adminStringsFor } = await import('../../app/admin/strings.js');
const { View } = await import('../../app/admin/view.js');

const member = (id) => ({ connectionId: `c${id}`, identity: `i${id}`, name: `Person ${id}`, joinedAt: 1, reconnecting: false, subscriptions: 1, streams: [] });
const session = (id) => ({
  id: `session ${id}`, mediaMode: 'routed', recorded: false, broadcast: false, memberCount: 2, streamCount: 2, members: [member(2 * id), member(2 * id + 1)],
});
const all = Array.from({ length: 2000 }, (_, index) => session(index));
const pageSize = 25;
const overview = { version: '0.1.0', now: 5, startedAt: 0, intervalMs: 1, keptSamples: 5, samples: [{ at: 5, sessions: 2000 }] };

/** Draws the state after each event. */
function shown(events, state) {
  const { language, strings } = adminStringsFor(['en']);
  const view = new View(strings, language, () => {});
  const effects = [];
  for (const event of events) {
    const [next, added] = step(state, event);
    state = next;
    effects.push(...added);
    view.render(state);
  }
  return { state, effects, view };
}
const listed = () => page.get('session-rows').children.map(({ dataset }) => dataset.key);
const load = (from, sessions = all.slice(from, from + pageSize)) => ({ type: 'loaded', what: 'sessions', data: { count: 2000, from, pageSize, sessions, switches: [] } });
const start = [{ type: 'enter', token: 't' }, { type: 'loaded', what: 'overview', data: overview }, { type: 'tab', tab: 'sessions' }];

test('of 2,000 sessions one page is drawn, and the others are a press away', () => {
  const { state } = shown([...start, load(0)], initial());
  assert.equal(listed().length, pageSize);
  const { size } = page.get('session-rows');
  assert.ok(size < 25 * pageSize, `${size} elements`);
  assert.equal(page.get('page-place').textContent, '1 to 25 of 2,000 sessions, the largest first');
  assert.deepEqual(['previous', 'next'].map((side) => page.get(`page-${side}`).getAttribute('aria-disabled')), ['true', 'false']);
  const last = shown([{ type: 'page', from: 1975 }, load(1975)], state);
  assert.deepEqual(last.effects, [{ do: 'load', what: 'sessions', query: '?from=1975' }]);
  assert.deepEqual(listed(), all.slice(1975).map(({ id }) => id));
  assert.deepEqual(['previous', 'next'].map((side) => page.get(`page-${side}`).getAttribute('aria-disabled')), ['false', 'true']);
});

test('an answer with all 2,000 sessions is cut to a page', () => {
  shown([...start, load(0, all)], initial());
  assert.equal(listed().length, pageSize);
});

test('elements stay when the sessions are loaded again', () => {
  const { state } = shown([...start, load(0)], initial());
  const before = [...page.get('session-rows').children];
  shown([load(0)], state);
  assert.deepEqual(page.get('session-rows').children.map((row, index) => row === before[index]), before.map(() => true));
});

test('a late answer for another page changes nothing, and a page that is gone leads to the last one', () => {
  const { state } = shown([...start, { type: 'page', from: 50 }, load(0)], initial());
  assert.equal(state.sessions, null);
  const fewer = { type: 'loaded', what: 'sessions', data: { count: 30, from: 50, pageSize, sessions: [], switches: [] } };
  const { state: moved, effects } = shown([fewer], state);
  assert.deepEqual([moved.sessionsFrom, effects], [25, [{ do: 'load', what: 'sessions', query: '?from=25' }]]);
  const none = { type: 'loaded', what: 'sessions', data: { count: 0, from: 0, pageSize, sessions: [], switches: [] } };
  const empty = shown([{ type: 'page', from: 0 }, none], moved).state;
  assert.deepEqual([empty.sessionsFrom, empty.sessions.count], [0, 0]);
  assert.equal(page.get('session-pages').hidden, true);
});

const node = (name, facts) => ({ node: name, life: 7, state: 'serving', leaseMs: 2640, version: '1.0', sockets: 57, load: 0.12, places: 40, address: '192.0.2.1:8080', ...facts });
const nodes = {
  asked: 'n1', seenMsAgo: 300,
  nodes: [node('n1'), node('n2', { relays: { connected: 1, connecting: 1, thinned: 0, fault: 'unreachable' }, state: 'draining', disconnectsInMs: 1_741_000 }), node('n3', { requested: 'draining', relays: { connected: 2, connecting: 0, thinned: 0 } }), { node: 'n4', life: 2, state: 'fenced', fencedBy: 'n1' }],
};
const inCluster = [
  { type: 'enter', token: 't' }, { type: 'loaded', what: 'overview', data: { ...overview, node: 'n1' } }, { type: 'tab', tab: 'nodes' }, { type: 'loaded', what: 'nodes', data: nodes },
];
/** All elements below one. */
const below = (element) => element.children.flatMap((child) => [child, ...below(child)]);

test('each node is shown with what it does, and with a button for what can be requested', () => {
  shown(inCluster, initial());
  const rows = page.get('node-rows').children;
  assert.deepEqual(rows.map(({ dataset }) => dataset.key), ['n1', 'n2', 'n3', 'n4']);
  const chips = rows.map((row) => below(row).filter(({ className }) => /^chip /.test(className ?? '')).map(({ textContent }) => textContent));
  assert.deepEqual(chips, [['In service'], ['Draining'], ['In service', 'Drain requested'], ['Ended']]);
  const labels = rows.map((row) => below(row).map((child) => child.getAttribute('aria-label')).filter(Boolean));
  assert.deepEqual(labels, [['Drain n1'], ['Serve from n2 again'], ['Serve from n3 again'], []]);
  assert.match(rows[0].textContent, /the server of this page.*Version1\.0Life7Lease left2\.6 sSockets57Load12%Places40Address192\.0\.2\.1:8080/);
  assert.match(rows[1].textContent, /Disconnects everyone in1,741 s/);
  assert.deepEqual(rows.map((row) => /Relays(.*?)Address/.exec(row.textContent)?.[1]), [undefined, '1 connected, 1 connecting', '2 connected', undefined]);
  const troubles = rows.map((row) => below(row).filter(({ className }) => className === 'trouble').map(({ textContent }) => textContent.slice(0, 34)));
  assert.deepEqual(troubles, [[], ['A relay to n2 does not connect: a '], [], []]);
  assert.match(rows[3].textContent, /Ended byn1Life2$/);
  assert.equal(page.get('nodes-source').textContent, 'The nodes of the cluster, as n1 knows them.');
});

test('the view of nodes is there only in a cluster', () => {
  const { state } = shown(inCluster, initial());
  assert.deepEqual([page.get('tab-nodes').hidden, page.get('panel-nodes').hidden], [false, false]);
  shown([{ type: 'loaded', what: 'overview', data: { ...overview, startedAt: 9 } }], state);
  assert.deepEqual([page.get('tab-nodes').hidden, page.get('panel-nodes').hidden, page.get('panel-overview').hidden], [true, true, false]);
});

test('a question is asked in a dialog until it is answered', () => {
  const act = { kind: 'node', node: 'n2', state: 'draining' };
  const { state } = shown([...inCluster, { type: 'ask', act }], initial());
  assert.equal(page.get('question').open, true);
  assert.match(page.get('question-text').textContent, /^Take n2 out of service\?/);
  assert.equal(page.get('question-yes').textContent, 'Drain');
  shown([{ type: 'answer', yes: true }], state);
  assert.equal(page.get('question').open, false);
  assert.equal(page.get('node-rows').children[1].getAttribute('data-busy'), 'yes');
});

test('the chosen tab is scrolled into view once', () => {
  const { state, view } = shown([...start, load(0)], initial());
  const { scrolls } = page.get('tab-sessions');
  view.render(state);
  assert.equal(page.get('tab-sessions').scrolls, scrolls);
  const before = page.get('tab-audit').scrolls;
  view.render(step(state, { type: 'tab', tab: 'audit' })[0]);
  assert.equal(page.get('tab-audit').scrolls, before + 1);
  // Without `behavior`, which would animate it also for those who want less motion.
  assert.deepEqual(page.get('tab-audit').scrolled, { block: 'nearest', inline: 'nearest' });
});

test('the chosen tab is scrolled into view again when the tabs before it have become wider', () => {
  const { state, view } = shown([...start, load(0)], initial());
  const { scrolls } = page.get('tab-sessions');
  const reports = (openCount) => ({ type: 'loaded', what: 'reports', data: { reports: [], openCount } });
  const [counted] = step(state, reports(3));
  view.render(counted);
  assert.equal(page.get('tab-sessions').scrolls, scrolls + 1);
  const [next] = step(counted, reports(4));
  view.render(next);
  assert.equal(page.get('tab-sessions').scrolls, scrolls + 1);
  view.render(step(next, { type: 'loaded', what: 'overview', data: { ...overview, node: 'n1' } })[0]);
  assert.equal(page.get('tab-sessions').scrolls, scrolls + 2);
});
