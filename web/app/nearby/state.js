// The page `/nearby` as a pure state machine: it takes an event and the time, and returns the next state and the effects. Calls
// are in `call-state.js`, devices and settings in `settings-state.js`; `words.js` turns a state into text.
import { changeKeeping } from '../shared/keep.js';
import { callHandlers, passingTime } from './call-state.js';
import { settingsHandlers } from './settings-state.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./types.js').Effect} Effect */
/** @typedef {import('./types.js').Step} Step */
/** @typedef {import('./types.js').Person} Person */
/** @typedef {import('./types.js').Listing} Listing */
/** @typedef {import('./types.js').Remembered} Remembered */

/**
 * The upper edges of the distance buckets in each unit (protocol §11), which are also the radii to choose from.
 * @type {Record<import('./types.js').Unit, number[]>}
 */
export const distances = { mi: [2, 5, 10, 25, 50, 100, 200], km: [3, 8, 16, 40, 80, 160, 320] };
/** Maximum length of a name in characters (protocol §10). */
export const longestName = 40;
/** Maximum number of contacts shown; the server stores no more. */
const maxContacts = 500;
/** Maximum number of calls that the page keeps of the call history. */
const maxLogged = 500;

/** @type {Listing} */
const noList = { is: 'off', people: [], next: null, pages: [null] };

/**
 * @param {{form: import('./types.js').Form, kept: Remembered, guest: boolean, arrival?: import('./types.js').Arrival}} from
 * @returns {State}
 */
export function initialState({ form, kept: before, guest, arrival: { call = false, ...arrival } = { find: null, link: null } }) {
  // If the user pressed a call's notification, go online, because only then can the call be answered.
  const kept = { ...before, entered: before.entered || (call && form.agreed) };
  return {
    link: { is: 'connecting' }, guest, form, kept, entered: kept.entered && form.agreed, saysForm: false, me: null, position: 'off', list: noList,
    panel: 'people', contacts: null, log: { calls: null, next: null }, missed: 0, found: { is: 'none' }, arrival, calls: [],
    command: null, media: { is: 'off' }, muted: false, cameraOff: false, ringSilent: false, over: null, keeping: [], devices: null,
    code: null, blocked: null, push: 'unavailable', question: null, trouble: null, passing: null,
  };
}

/**
 * @param {State} state
 * @param {Event} event
 * @param {number} now milliseconds
 * @returns {Step}
 */
export function step(state, event, now) {
  const handle = handlers[event.type];
  if (!handle) throw new Error(`Unknown event "${event.type}".`);
  return handle(state, event, now);
}

/** @param {State} state @returns {Step} */
const unchanged = (state) => [state, []];

/** @type {import('./types.js').Handlers} */
const handlers = {
  ...settingsHandlers,
  ...callHandlers,

  // User actions on the first screen and in the list.
  form: (state, { change }) => changeForm(state, change),
  keepPosition: (state, { on }) => remember({ ...state, kept: { ...state.kept, position: on } }),
  enter: (state) => enter({ ...state, saysForm: true }, state),
  arrived: (state, event) => arrived(state, event),
  leave: (state) => leave(state),
  panel: (state, { is }) => panel(state, is),
  radius: (state, { radius }) => watchAnew(state, { radius }),
  unit: (state, { unit }) => watchAnew(state, { unit, radius: sameRadius(state.kept, unit) }),
  page: (state, { to }) => turnPage(state, to),
  find: (state, { text }) => find(state, text),
  usePosition: (state) => usePosition(state),
  forgetPosition: (state) => forgetPosition(state),
  copyLink: (state) => (state.me ? [state, [{ do: 'copy', personId: state.me.personId }]] : unchanged(state)),
  moreCalls: (state) => (state.log.next === null ? unchanged(state) : [state, [{ do: 'askLog', before: state.log.next }]]),
  shown: (state, { visible }) => shown(state, visible),
  dismiss: (state) => [{ ...state, trouble: null, passing: null, over: null }, []],

  // The connection to the server.
  connected: (state, { resumed, isNew = false }) => connected(state, resumed, isNew),
  restarted: (state, { isNew = false }) => backOnline(state, isNew),
  reconnecting: (state) => [{ ...state, link: { is: 'reconnecting' } }, []],
  closed: (state, event) => closed(state, event),
  retryLink: (state) => [{ ...state, link: { is: 'connecting' } }, [{ do: 'connect' }]],
  identityLost: (state) => identityLost(state),

  // Events about people.
  self: (state, { me }) => self(state, me),
  appearRefused: (state, event) => appearRefused(state, event),
  position: (state, { is }) => position(state, is),
  positionForgotten: (state) => dropPosition(state),
  nearby: (state, { people, next = null }) => [state.list.is === 'off' ? state : { ...state, list: { ...state.list, is: 'here', people, next } }, []],
  noPosition: (state) => [{ ...state, list: noList }, []],
  found: (state, { person }) => [{ ...state, found: person ? { is: 'found', person } : { is: 'nobody' } }, []],
  contacts: (state, { people }) => [{ ...state, contacts: people.slice(0, maxContacts) }, []],
  contactChanged: (state, { person }) => [{ ...state, contacts: state.contacts?.map((one) => (one.personId === person.personId ? person : one)) ?? null }, []],
  contactAdded: (state, event) => contactAdded(state, event),
  contactRemoved: (state, { personId }) => [{ ...state, contacts: state.contacts?.filter((one) => one.personId !== personId) ?? null }, []],
  log: (state, event) => logArrived(state, event),

  // Results of requests, and timers.
  refused: (state, { code, message = '' }) => [{ ...state, trouble: { code, message, person: null } }, []],
  passed: (state, { passing }) => [state.passing === passing ? { ...state, passing: null } : state, []],
};

/**
 * Returns the effect that removes a confirmation after `passingTime`, unless another one has replaced it by then.
 * @param {string} passing
 * @returns {Effect}
 */
export function passes(passing) {
  return { do: 'later', after: passingTime, event: { type: 'passed', passing } };
}

/** @param {State} state @returns {Step} */
export function remember(state) {
  return [state, [{ do: 'remember', form: state.form, kept: state.kept }]];
}

/** @param {State} state @param {Partial<import('./types.js').Form>} change @returns {Step} */
function changeForm(state, change) {
  return remember({ ...state, form: { ...state.form, ...change } });
}

/**
 * Goes online, because the user pressed the button or pressed a call's notification.
 * @param {State} state
 * @param {State} [otherwise] the next state if the user has not agreed to the rules, or is already online
 * @returns {Step}
 */
function enter(state, otherwise = state) {
  if (!state.form.agreed || state.entered) return unchanged(otherwise);
  const entered = { ...state, entered: true, kept: { ...state.kept, entered: true }, trouble: null, passing: null };
  const [kept, effects] = remember(entered);
  if (state.link.is === 'closed') return [{ ...kept, link: { is: 'connecting' } }, [...effects, { do: 'connect' }]];
  if (state.link.is !== 'online') return [kept, effects];
  const [appearing, more] = appear(kept, false);
  return [appearing, [...effects, ...more, { do: 'focus', on: 'home' }]];
}

/**
 * Sends `presence.appear`, which puts the user online. Normally keeps the settings that the server has, because
 * another device of this person may have changed them. Sends the form only if the user went online here, or if this
 * person is new to the server.
 * @param {State} state
 * @param {boolean} isNew
 * @returns {Step}
 */
function appear(state, isNew) {
  if (!state.saysForm && !isNew) return [state, [{ do: 'appear', as: {} }]];
  const { name } = state.form;
  const { visible, doNotDisturb, ringable } = state.kept;
  return [state, [{ do: 'appear', as: { name, visible, doNotDisturb, ringable } }]];
}

/**
 * Handles the server's refusal to let the user go online: goes back to the first screen, where the user can change the
 * name.
 * @param {State} state
 * @param {Event} event
 * @returns {Step}
 */
function appearRefused(state, { code, message = '' }) {
  if (!state.entered || state.me) return unchanged(state);
  const [kept, effects] = remember({ ...state, entered: false, saysForm: false, kept: { ...state.kept, entered: false } });
  return [{ ...kept, trouble: { code, message, person: null } }, [...effects, { do: 'focus', on: 'name' }]];
}

/** @param {State} state @returns {Step} */
function leave(state) {
  if (!state.entered || state.command || state.calls.length > 0) return unchanged(state);
  const left = { ...blank(state), kept: { ...state.kept, entered: false } };
  const [kept, effects] = remember(left);
  return [kept, [{ do: 'leave' }, { do: 'stopPosition' }, ...effects, { do: 'focus', on: 'setup' }]];
}

/**
 * Returns the state as before going online: without what the server has sent about people, and without calls,
 * questions and messages. Keeps the form, the stored settings and the connection.
 * @param {State} state
 * @returns {State}
 */
function blank(state) {
  return {
    ...state, entered: false, saysForm: false, me: null, position: 'off', list: noList, panel: 'people', contacts: null, log: { calls: null, next: null },
    missed: 0, found: { is: 'none' }, calls: [], command: null, over: null, keeping: [], devices: null, code: null, blocked: null,
    question: null, trouble: null, passing: null,
  };
}

/** @param {State} state @param {boolean} resumed @param {boolean} isNew @returns {Step} */
function connected(state, resumed, isNew) {
  const dropped = state.link.is === 'reconnecting';
  // The SDK has connected again, but as a new client. The `restarted` event follows, and the SDK repeats
  // `presence.appear`.
  if (dropped && !resumed) return unchanged(state);
  if (dropped) return backOnline(state, isNew);
  /** @type {State} */
  const online = { ...state, link: { is: 'online' } };
  return state.entered ? appear(online, isNew) : unchanged(online);
}

/**
 * Handles a restored connection. The SDK restores the presence that it had sent before, but the user may have pressed
 * “Go online” while the connection was lost.
 * @param {State} state
 * @param {boolean} isNew
 * @returns {Step}
 */
function backOnline(state, isNew) {
  /** @type {State} */
  const online = { ...state, link: { is: 'online' }, passing: 'back' };
  // The SDK repeats an earlier `presence.appear`. Send one here if there was none, or if this person is new to the
  // server, which then needs the form.
  const [appearing, effects] = state.entered && (!state.me || isNew) ? appear(online, isNew) : unchanged(online);
  return [appearing, [...effects, passes('back')]];
}

/**
 * Connects as a new person, because the server no longer accepts the identity of this browser.
 * @param {State} state
 * @returns {Step}
 */
function identityLost(state) {
  const { entered, saysForm } = state;
  const restarted = { ...blank(state), entered, saysForm, link: /** @type {State['link']} */ ({ is: 'connecting' }), media: /** @type {State['media']} */ ({ is: 'off' }) };
  return [restarted, [...(state.media.is === 'off' ? [] : [{ do: 'closeMedia' }]), { do: 'stopPosition' }, { do: 'connect' }]];
}

/** @param {State} state @param {Event} event @returns {Step} */
function closed(state, { code, message = '' }) {
  /** @type {State} */
  const ended = { ...blank(state), entered: state.entered, saysForm: state.saysForm, link: { is: 'closed', code, message }, media: { is: 'off' } };
  /** @type {Effect[]} */
  const effects = [...(state.media.is === 'off' ? [] : [{ do: 'closeMedia' }]), { do: 'stopPosition' }];
  if (code !== 'deleted' && code !== 'unlinked') return [ended, effects];
  // The account was deleted or this device was unlinked, here or on another device. Going online again creates a new
  // account.
  const form = code === 'deleted' ? { ...state.form, name: '' } : state.form;
  const [kept, more] = remember({ ...ended, entered: false, saysForm: false, form, kept: { ...state.kept, entered: false, push: false } });
  return [kept, [...effects, ...more]];
}

/** @param {State} state @param {import('./types.js').Me} me @returns {Step} */
function self(state, me) {
  if (!state.entered) return unchanged(state);
  const first = state.me === null || state.me.personId !== me.personId;
  const { visible, doNotDisturb, ringable } = me;
  // Without a chosen name the server picks one. Do not save that as the user's choice.
  const chosen = state.form.name !== '' || (state.me !== null && state.me.name !== me.name);
  const form = chosen ? { ...state.form, name: me.name } : state.form;
  const known = { ...state, me, form, saysForm: false, kept: { ...state.kept, visible, doNotDisturb, ringable } };
  if (!first) return remember(known);
  const [kept, effects] = remember({ ...known, log: { calls: null, next: null } });
  /** @type {Effect[]} */
  const asks = [{ do: 'askContacts' }, { do: 'askLog', before: null }];
  const [positioned, where] = kept.kept.position && kept.position === 'off' ? usePosition(kept) : unchanged(kept);
  const [watching, more] = me.hasPosition ? watch(positioned) : unchanged(positioned);
  const [arrived, yetMore] = arrive(watching);
  return [arrived, [...effects, ...asks, ...where, ...more, ...yetMore]];
}

/**
 * Carries out what the address requests, once, after the user has gone online. Linking this device takes precedence
 * over finding a person.
 * @param {State} state
 * @returns {Step}
 */
function arrive(state) {
  const { find: whom, link } = state.arrival;
  const done = { ...state, arrival: { find: null, link: null } };
  if (link) return [{ ...done, panel: 'settings', question: { is: 'link', code: link } }, [{ do: 'askDevices' }, { do: 'askBlocked' }]];
  return whom ? find(done, whom) : unchanged(state);
}

/**
 * Handles a changed address in an open page, or a press on a call's notification.
 * @param {State} state
 * @param {Event} event
 * @returns {Step}
 */
function arrived(state, { find: whom = null, link = null, call = false }) {
  const asked = { ...state, arrival: { find: whom ?? state.arrival.find, link: link ?? state.arrival.link } };
  if (asked.me) return arrive(asked);
  return call ? enter(asked) : unchanged(asked);
}

/** @param {State} state @param {import('./types.js').Panel} is @returns {Step} */
function panel(state, is) {
  const turned = { ...state, panel: is, passing: null };
  if (is === 'settings') return [turned, [{ do: 'askDevices' }, { do: 'askBlocked' }]];
  if (is === 'contacts') return [turned, [{ do: 'askContacts' }]];
  if (is !== 'log') return unchanged(turned);
  const unseen = (state.log.calls ?? []).filter(({ seen }) => !seen).map(({ callId }) => callId);
  return [{ ...turned, missed: 0 }, [{ do: 'seen', calls: unseen }, { do: 'askLog', before: null }]];
}

/** @param {State} state @returns {Step} */
function watch(state) {
  const pages = state.list.pages;
  const list = /** @type {Listing} */ ({ ...state.list, is: state.list.is === 'here' ? 'here' : 'loading' });
  const { unit, radius } = state.kept;
  return [{ ...state, list }, [{ do: 'watch', unit, radius, after: pages[pages.length - 1] }]];
}

/** @param {State} state @param {Partial<Remembered>} change @returns {Step} */
function watchAnew(state, change) {
  const [kept, effects] = remember({ ...state, kept: { ...state.kept, ...change }, list: { ...state.list, pages: [null] } });
  // Distances in the old unit mean nothing in the new one.
  if (change.unit) kept.list = { ...kept.list, people: [] };
  if (kept.list.is === 'off') return [kept, effects];
  const [watching, more] = watch({ ...kept, list: { ...kept.list, is: 'loading' } });
  return [watching, [...effects, ...more]];
}

/**
 * Returns the radius of `unit` that corresponds to the current one: the one at the same index of `distances`.
 * @param {Remembered} kept
 * @param {import('./types.js').Unit} unit
 */
function sameRadius({ unit: old, radius }, unit) {
  const at = distances[old].findIndex((edge) => edge >= radius);
  return distances[unit].at(at) ?? distances[unit][distances[unit].length - 1];
}

/** @param {State} state @param {'further' | 'nearer'} to @returns {Step} */
function turnPage(state, to) {
  const { list } = state;
  if (list.is !== 'here') return unchanged(state);
  if (to === 'nearer') {
    return list.pages.length < 2 ? unchanged(state) : watch({ ...state, list: { ...list, is: 'loading', pages: list.pages.slice(0, -1) } });
  }
  return list.next === null ? unchanged(state) : watch({ ...state, list: { ...list, is: 'loading', pages: [...list.pages, list.next] } });
}

/** @param {State} state @param {string} text an id, or a link with one @returns {Step} */
function find(state, text) {
  const personId = personIdIn(text);
  if (!text.trim()) return [{ ...state, found: { is: 'none' } }, []];
  if (!personId) return [{ ...state, found: { is: 'bad' } }, []];
  if (personId === state.me?.personId) return [{ ...state, found: { is: 'self' } }, []];
  return [{ ...state, panel: 'people', found: { is: 'searching' } }, [{ do: 'find', personId }]];
}

/** @param {string} text @returns {string | null} */
export function personIdIn(text) {
  return text.match(/(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])/i)?.[0].toLowerCase() ?? null;
}

/** @param {State} state @returns {Step} */
function usePosition(state) {
  if (state.position === 'asking' || state.position === 'on') return unchanged(state);
  const [kept, effects] = remember({ ...state, position: 'asking', kept: { ...state.kept, position: true } });
  return [kept, [...effects, { do: 'watchPosition' }]];
}

/** @param {State} state @returns {Step} */
function forgetPosition(state) {
  const [dropped, effects] = dropPosition(state);
  return [dropped, [...effects, { do: 'forgetPosition' }]];
}

/**
 * Stops using the location, which was deleted here or on another device, so that this device does not send it again.
 * @param {State} state
 * @returns {Step}
 */
function dropPosition(state) {
  const me = state.me && { ...state.me, hasPosition: false };
  const [kept, effects] = remember({ ...state, me, position: 'off', list: noList, kept: { ...state.kept, position: false } });
  return [kept, [...effects, { do: 'stopPosition' }]];
}

/** @param {State} state @param {import('./types.js').Position} is `on`: the server has the location @returns {Step} */
function position(state, is) {
  if (!state.entered) return unchanged(state);
  const reported = { ...state, position: is };
  return is === 'on' && state.list.is === 'off' && state.me ? watch({ ...reported, me: { ...state.me, hasPosition: true } }) : unchanged(reported);
}

/**
 * Watches the list again when the page is shown, and stops watching when it is hidden.
 * @param {State} state
 * @param {boolean} visible
 * @returns {Step}
 */
function shown(state, visible) {
  if (!state.entered || state.list.is === 'off') return unchanged(state);
  return visible ? watch(state) : [state, [{ do: 'unwatch' }]];
}

/** @param {State} state @param {Event} event @returns {Step} */
function contactAdded(state, { person, callId }) {
  const others = (state.contacts ?? []).filter((one) => one.personId !== person.personId);
  const keeping = callId ? changeKeeping(state.keeping, callId, { mine: true, theirs: true, agreed: true }) : state.keeping;
  return [{ ...state, keeping, contacts: state.contacts && [...others, person].slice(0, maxContacts) }, []];
}

/** @param {State} state @param {Event} event @returns {Step} */
function logArrived(state, { calls, next = null, before = null }) {
  const kept = before === null ? calls : [...(state.log.calls ?? []), ...calls].slice(0, maxLogged);
  const unseen = calls.filter((/** @type {import('./types.js').Logged} */ call) => call.outcome === 'missed' && !call.seen).length;
  const missed = state.panel === 'log' ? 0 : Math.max(state.missed, unseen);
  return [{ ...state, missed, log: { calls: kept, next } }, []];
}
