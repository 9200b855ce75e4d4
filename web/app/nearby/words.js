// Turns a state of the page `/nearby` into the screen to show, the text of the status line and the notices, and the
// sound to play. All functions are pure.
import { keepingOf } from '../shared/keep.js';
import { companion, currentCall, incomingCall } from './call-state.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Person} Person */
/** @typedef {import('./strings.js').Strings} Strings */
/** @typedef {'calm' | 'busy' | 'good' | 'warn' | 'bad'} Tone */
/** @typedef {{text: string, tone: Tone}} Status */
/** @typedef {'retryLink' | 'takeOver' | 'reload' | 'dismiss' | 'callVoice' | 'callVideo' | 'callAgain' | 'callBack' | 'keep' | 'unblockSound' | 'check'} Action */
/** @typedef {{text: string, actions: Action[], tone: Tone}} Notice */

/** Outcomes after which the page offers to call the same person again. */
const worthAgain = ['declined', 'missed', 'unanswered', 'busy', 'unreachable', 'failed', 'connectionLost', 'cancelled'];

/** @param {State} state @returns {'setup' | 'home' | 'call'} */
export function screenOf(state) {
  if (companion(state)) return 'call';
  return state.entered ? 'home' : 'setup';
}

/**
 * Returns which sound to play: a ring for an incoming call, a knock if it is a second call, the ringback tone while
 * the user's own call rings (unless no device of the other person rings yet), or `none`.
 * @param {State} state
 * @returns {'none' | 'ring' | 'knock' | 'ringback'}
 */
export function soundOf(state) {
  const call = currentCall(state);
  if (incomingCall(state)) return call && call.state !== 'ringing' ? 'knock' : 'ring';
  return call?.state === 'ringing' && call.devices !== 0 ? 'ringback' : 'none';
}

/** @param {State} state @param {Strings} strings @returns {Status} */
export function statusOf(state, strings) {
  const words = strings.nearby.status;
  switch (state.link.is) {
    case 'closed': return { text: words.closed, tone: 'bad' };
    case 'reconnecting': return { text: words.dropped, tone: 'warn' };
  }
  const call = callStatus(state, strings);
  if (call) return call;
  const ringing = incomingCall(state);
  if (ringing) return { text: words.incoming(ringing.person.name), tone: 'busy' };
  if (state.over) return { text: overText(state.over, strings), tone: worthAgain.includes(state.over.outcome) ? 'warn' : 'calm' };
  if (state.passing && state.passing in words) return { text: String(words[/** @type {'saved'} */ (state.passing)]), tone: 'good' };
  if (state.link.is === 'connecting') return { text: words.connecting, tone: 'busy' };
  if (!state.entered) return { text: words.welcome, tone: 'calm' };
  if (!state.me) return { text: words.entering, tone: 'busy' };
  const { name, visible, doNotDisturb } = state.me;
  if (doNotDisturb) return { text: words.disturb(name), tone: 'warn' };
  return { text: visible ? words.here(name) : words.hidden(name), tone: 'good' };
}

/** @param {State} state @param {Strings} strings @returns {Status | null} */
function callStatus(state, { nearby: { status: words } }) {
  const asking = state.media.is === 'asking' && state.command;
  if (asking) return { text: state.command?.video ? words.allow : words.allowVoice, tone: 'busy' };
  const call = currentCall(state);
  const name = companion(state)?.name ?? '';
  if (!call) return state.command?.is === 'dial' ? { text: words.calling(name), tone: 'busy' } : null;
  if (call.away) return { text: words.away(name), tone: 'warn' };
  switch (call.state) {
    case 'ringing':
      if (call.devices === null) return { text: words.calling(name), tone: 'busy' };
      return { text: call.devices > 0 ? words.ringing(name) : words.waking(name), tone: 'busy' };
    case 'joining': return { text: words.joining(name), tone: 'busy' };
    case 'active': return { text: words.talking(name), tone: 'good' };
    default: return { text: words.calling(name), tone: 'busy' };
  }
}

/**
 * Returns the text for how a call ended.
 * @param {import('./types.js').Over} over
 * @param {Strings} strings
 */
export function overText({ outcome, direction, person, durationMs }, { nearby }) {
  return nearby.over[direction][outcome](person.name, durationMs);
}

/**
 * Returns the notice to show: why the connection is closed, the latest problem, or that the browser blocks the call's
 * sound. Returns null if there is none of these.
 * @param {State} state
 * @param {Strings} strings
 * @returns {Notice | null}
 */
export function noticeOf(state, strings) {
  if (state.link.is === 'closed') return closedNotice(state.link, strings);
  if (state.trouble) return troubleNotice(state, state.trouble, strings);
  const call = currentCall(state);
  if (call?.silent) return { text: strings.silent, actions: ['unblockSound'], tone: 'warn' };
  return null;
}

/** @param {{code: string, message: string}} link @param {Strings} strings @returns {Notice} */
function closedNotice({ code, message }, strings) {
  const own = strings.nearby.troubles[code];
  const shared = strings.troubles[/** @type {keyof Strings['troubles']} */ (code)];
  switch (code) {
    // The user continues with the button on the first screen.
    case 'deleted': case 'unlinked': return { text: own, actions: [], tone: 'calm' };
    case 'version_unsupported': return { text: shared, actions: ['reload'], tone: 'bad' };
    // The server's message says when the ban ends.
    case 'banned': return { text: message ? `${shared} ${message}` : shared, actions: [], tone: 'bad' };
    case 'forbidden_origin': return { text: shared, actions: [], tone: 'bad' };
    case 'replaced': return { text: shared, actions: ['takeOver'], tone: 'bad' };
    case 'connect_failed': return { text: shared, actions: ['retryLink', 'check'], tone: 'bad' };
    default: return { text: own ?? shared ?? (message || strings.troubles.connect_failed), actions: ['retryLink'], tone: 'bad' };
  }
}

/** @param {State} state @param {import('./types.js').Trouble} trouble @param {Strings} strings @returns {Notice} */
function troubleNotice(state, { code, message, person, why }, strings) {
  if (code === 'media' && why) {
    // If the user was calling a person, offer a voice call, and another attempt with video.
    /** @type {Action[]} */
    const actions = person && why !== 'insecure' ? ['callVoice', 'callVideo', 'dismiss'] : ['dismiss'];
    return { text: strings.nearby.media[why], actions, tone: 'warn' };
  }
  // The server's message says whether the user blocked this person, or how long to wait.
  if (message && (code === 'call_not_allowed' || code === 'rate_limited')) return { text: message, actions: ['dismiss'], tone: 'warn' };
  const shared = strings.troubles[/** @type {keyof Strings['troubles']} */ (code)];
  return { text: strings.nearby.troubles[code] ?? shared ?? (message || strings.troubles.unknown), actions: ['dismiss'], tone: 'warn' };
}

/**
 * Returns what to offer after a call: to call again, to call back, or to keep in touch. Null if there is nothing to
 * offer. The status line says how the call ended.
 * @param {State} state
 * @param {Strings} strings
 * @returns {Notice | null}
 */
export function afterwardsOf(state, { nearby }) {
  const { over } = state;
  if (!over || currentCall(state) || state.command) return null;
  const { name, personId } = over.person;
  if (worthAgain.includes(over.outcome)) {
    // Offer to call back a caller the user has not talked to.
    const isBack = over.direction === 'incoming' && over.outcome !== 'failed' && over.outcome !== 'connectionLost';
    if (isBack) return { text: nearby.overBack(name), actions: ['callBack', 'dismiss'], tone: 'calm' };
    return { text: nearby.overAgain(name), actions: ['callAgain', 'dismiss'], tone: 'calm' };
  }
  const known = state.contacts?.some((one) => one.personId === personId);
  if (over.durationMs === null || known) return null;
  const keeping = keepingOf(state.keeping, over.callId);
  return { text: nearby.overKeep(name), actions: keeping.mine ? ['dismiss'] : ['keep', 'dismiss'], tone: 'calm' };
}
