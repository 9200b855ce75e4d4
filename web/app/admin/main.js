// Wires the operator's page: asks for the token, loads what is shown when the server says that it has changed, or else every few seconds,
// and sends what the operator decides. The token is in each request's header, and in this tab's session storage.
import { at } from '../shared/base.js';
import { box, button, byId, input } from '../shared/dom.js';
import { run } from '../shared/run.js';
import { fillIn } from '../shared/strings.js';
import { Changes } from './changes.js';
import { initial, pageOf, step, tabAfter, tabs, tabsOf } from './state.js';
import { adminStringsFor } from './strings.js';
import { View } from './view.js';

/** @typedef {import('./state.js').State} State */
/** @typedef {import('./state.js').Event} Event */
/** @typedef {import('./state.js').Effect} Effect */
/** @typedef {import('./state.js').Act} Act */
/** @typedef {import('./state.js').Trouble} Trouble */

const tokenKey = 'confab.admin.token';
/** How often the page is refreshed (milliseconds), as often as the server takes samples. */
const refreshInterval = 5000;
/** The same while the server says what has changed, for what it does not notice, such as a ban that ends. */
const slowInterval = 30_000;
/** How long to wait for an answer (milliseconds). */
const answerTimeout = 15_000;

/** @type {import('../../lib/clock.js').Clock} the port of this page does not serve the SDK's */
const clock = {
  now: () => performance.now(), setTimeout: (run, ms) => setTimeout(run, ms),
  clearTimeout: (handle) => clearTimeout(/** @type {any} */ (handle)),
};

const { language, strings } = adminStringsFor(navigator.languages);
document.documentElement.lang = language;
document.title = strings.admin.title;
fillIn(document, strings);

let token = sessionStorage.getItem(tokenKey) ?? '';
/**
 * The requests that are on their way, so that a slow server does not get more and more of them.
 * @type {Set<string>}
 */
const loading = new Set();

/**
 * Sends a request. Throws a `Trouble`.
 * @param {string} path @param {object} [body]
 */
async function ask(path, body) {
  const aborting = new AbortController();
  const timer = setTimeout(() => aborting.abort(), answerTimeout);
  /** @type {Response} */
  let response;
  let data;
  try {
    response = await fetch(at(`/admin/api/${path}`), {
      method: body ? 'POST' : 'GET', headers: { authorization: `Bearer ${token}` }, body: body && JSON.stringify(body),
      cache: 'no-store', signal: aborting.signal,
    });
    if (response.status === 204) return null;
    data = await response.json().catch(() => null);
  } catch {
    throw 'unreachable';
  } finally {
    clearTimeout(timer);
  }
  if (response.ok && data) return data;
  if (response.status === 401) throw 'wrong';
  throw data?.message ? { text: String(data.message) } : 'unreachable';
}

/** @param {AbortSignal} signal */
async function openChanges(signal) {
  const response = await fetch(at('/admin/api/changes'), { headers: { authorization: `Bearer ${token}` }, cache: 'no-store', signal });
  if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
  return response.body.getReader();
}

const changes = new Changes({ open: openChanges, changed: (views) => dispatch({ type: 'changed', views }), clock });

/** @param {number} report @returns {Promise<Blob>} the image of the reported person's camera */
async function loadSample(report) {
  const aborting = new AbortController();
  const timer = setTimeout(() => aborting.abort(), answerTimeout);
  try {
    const response = await fetch(at(`/admin/api/reports/${report}/sample`), {
      headers: { authorization: `Bearer ${token}` }, cache: 'no-store', signal: aborting.signal,
    });
    if (!response.ok) throw new Error(`status ${response.status}`);
    return await response.blob();
  } finally {
    clearTimeout(timer);
  }
}

/** @param {Act} act @returns {Promise<any>} */
function carryOutAct(act) {
  const sentence = 'reason' in act ? { reason: act.reason, ...(act.duration ? { duration: act.duration } : {}) } : {};
  switch (act.kind) {
    case 'ban': return ask(`reports/${act.report}/ban`, sentence);
    case 'dismiss': return ask(`reports/${act.report}/dismiss`, {});
    case 'warn': return ask(`reports/${act.report}/warn`, act.text ? { text: act.text } : {});
    case 'banSubject': return ask('bans', { subject: act.subject, ...sentence });
    case 'lift': return ask('bans/lift', { subject: act.subject });
    case 'node': return ask(`nodes/${act.node}`, { state: act.state });
  }
}

/** @type {Record<Effect['do'], (effect: any) => void>} */
const carryOut = {
  keep: (effect) => {
    token = effect.token;
    sessionStorage.setItem(tokenKey, token);
  },
  forget: () => {
    token = '';
    sessionStorage.removeItem(tokenKey);
    input('token').value = '';
    input('token').focus();
  },
  load: async ({ what, query }) => {
    const path = what + query;
    if (loading.has(path)) return;
    loading.add(path);
    const used = token;
    try {
      const data = await ask(path);
      if (used === token) dispatch({ type: 'loaded', what, data });
    } catch (trouble) {
      if (used === token) dispatch({ type: 'failed', trouble: /** @type {Trouble} */ (trouble) });
    } finally {
      loading.delete(path);
    }
  },
  act: async ({ act }) => {
    try {
      dispatch({ type: 'acted', act, data: await carryOutAct(act) });
      if (act.kind === 'banSubject') byId('ban-form', HTMLFormElement).reset();
    } catch (trouble) {
      dispatch({ type: 'actFailed', act, trouble: /** @type {Trouble} */ (trouble) });
    }
  },
};

const view = new View(
  strings, language, (act) => dispatch({ type: 'act', act }), loadSample, (act) => dispatch({ type: 'ask', act }), (yes) => dispatch({ type: 'answer', yes }),
);
/** @type {ReturnType<typeof run<State, Event>>} */
const machine = run({
  state: initial(),
  step: (/** @type {State} */ state, /** @type {Event} */ event) => step(state, event),
  draw: (/** @type {State} */ state) => {
    view.render(state);
    listen(state);
    return null;
  },
  carryOut,
});
const { dispatch } = machine;

byId('door', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  dispatch({ type: 'enter', token: input('token').value.trim() });
});
byId('ban-form', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  dispatch({
    type: 'act',
    act: { kind: 'banSubject', subject: input('ban-subject').value.trim(), reason: input('ban-reason').value.trim(), duration: byId('ban-duration', HTMLSelectElement).value },
  });
});
button('lock').addEventListener('click', () => dispatch({ type: 'lock' }));
button('notice-close').addEventListener('click', () => {
  dispatch({ type: 'closeNote' });
  button(`tab-${machine.state.tab}`).focus();
});
input('show-closed').addEventListener('change', () => dispatch({ type: 'showClosed', on: input('show-closed').checked }));
for (const side of /** @type {const} */ (['previous', 'next'])) {
  button(`page-${side}`).addEventListener('click', () => {
    const { sessions } = machine.state;
    const from = sessions && pageOf(sessions)[side];
    if (from !== null) dispatch({ type: 'page', from });
  });
}
for (const tab of tabs) button(`tab-${tab}`).addEventListener('click', () => dispatch({ type: 'tab', tab }));
box('tabs').addEventListener('keydown', (event) => {
  const next = tabAfter(machine.state.tab, event.key, tabsOf(machine.state));
  if (!next) return;
  event.preventDefault();
  dispatch({ type: 'tab', tab: next });
  button(`tab-${next}`).focus();
});
/** @param {State} state */
function listen(state) {
  changes.want(state.phase === 'open' && document.visibilityState === 'visible');
}
let lastTick = 0;
const tick = () => {
  lastTick = clock.now();
  dispatch({ type: 'tick' });
};
setInterval(() => {
  const isDue = !changes.isLive || clock.now() - lastTick >= slowInterval;
  if (document.visibilityState === 'visible' && isDue) tick();
}, refreshInterval);
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') tick();
  else listen(machine.state);
});
machine.render();
if (token) dispatch({ type: 'enter', token });
else input('token').focus();
