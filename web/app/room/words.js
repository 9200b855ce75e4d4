// Turns a state of the page into text: the screen, the status line, the current problem, and the end of a visit. All
// functions are pure.
import { handIsRaised } from './room-state.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./strings.js').Strings} Strings */
/** @typedef {'calm' | 'busy' | 'good' | 'warn' | 'bad'} Tone */
/** @typedef {{text: string, tone: Tone}} Status */
/** @typedef {'retryLink' | 'takeOver' | 'reload' | 'dismiss' | 'again' | 'back' | 'otherRooms' | 'openMedia' | 'openVoice' | 'turnOn' | 'unblock' | 'devices' | 'beRecorded' | 'notRecorded' | 'beBroadcast' | 'notBroadcast' | 'check'} Action */
/** @typedef {{text: string, actions: Action[], tone: Tone}} Notice */

/** Endings after which joining again cannot succeed. */
const final = ['banned', 'room_banned', 'closed', 'not_permitted', 'room_not_found', 'unreadable'];

/** @param {State} state @returns {'before' | 'room' | 'over'} */
export function screenOf({ place }) {
  if (place.is === 'in') return 'room';
  return place.is === 'over' ? 'over' : 'before';
}

/**
 * Returns whether a chat line shows its sender's name: only the first of consecutive lines from one sender does, and
 * none of the user's own lines.
 * @param {import('./types.js').ChatLine} line
 * @param {import('./types.js').ChatLine | undefined} above the line above it
 */
export const showsName = (line, above) => !line.mine && (above === undefined || above.mine || above.connectionId !== line.connectionId);

/** @param {State} state @param {Strings} strings @returns {Status} */
export function statusOf(state, strings) {
  const words = strings.room.status;
  if (state.link.is === 'closed') return { text: words.closed, tone: 'bad' };
  if (state.link.is === 'reconnecting' || state.room?.away) return { text: words.dropped, tone: 'warn' };
  if (state.passing) return passingStatus(state.passing, words);
  switch (state.place.is) {
    case 'in': return insideStatus(state, words);
    case 'waiting': return { text: words.waiting, tone: 'busy' };
    case 'over': return { text: words.over, tone: 'calm' };
  }
  if (state.media.is === 'asking') return { text: words.allow, tone: 'busy' };
  if (state.place.is === 'joining') return { text: words.joining, tone: 'busy' };
  return state.link.is === 'connecting' ? { text: words.connecting, tone: 'busy' } : { text: words.ready, tone: 'calm' };
}

/** @param {import('./types.js').Passing} passing @param {Strings['room']['status']} words @returns {Status} */
function passingStatus({ is, name = '' }, words) {
  const said = words[/** @type {'came'} */ (is)];
  const isBad = ['mutedByHost', 'shareStopped', 'away'].includes(is);
  return { text: typeof said === 'function' ? said(name) : String(said ?? ''), tone: isBad ? 'warn' : 'good' };
}

/** @param {State} state @param {Strings['room']['status']} words @returns {Status} */
function insideStatus(state, words) {
  if (state.recording && state.broadcast) return { text: words.recordedAndBroadcast, tone: 'bad' };
  if (state.recording) return { text: words.recorded, tone: 'bad' };
  if (state.broadcast) return { text: words.broadcast, tone: 'bad' };
  if (state.sharing === 'on') return { text: words.sharing, tone: 'good' };
  if (handIsRaised(state)) return { text: words.handUp, tone: 'good' };
  const others = (state.room?.people.length ?? 1) - 1;
  return others > 0 ? { text: words.here(others), tone: 'good' } : { text: words.alone, tone: 'calm' };
}

/**
 * Returns the most important notice to show above everything else, or null if there is none.
 * @param {State} state
 * @param {Strings} strings
 * @returns {Notice | null}
 */
export function noticeOf(state, strings) {
  const { link, media, trouble, place } = state;
  // The ending screen already shows a problem with the token.
  if (place.is === 'over' && isOfToken(place.why)) return null;
  if (link.is === 'closed') return closedNotice(link, strings);
  if (trouble) return { text: troubleText(trouble, strings), actions: ['dismiss'], tone: 'warn' };
  if (place.is !== 'in') return null;
  if (state.recording?.asks) return { text: strings.room.askRecording, actions: ['beRecorded', 'notRecorded'], tone: 'warn' };
  if (state.broadcast?.asks) return { text: strings.room.askBroadcast, actions: ['beBroadcast', 'notBroadcast'], tone: 'warn' };
  const fault = faultText(state, strings);
  if (fault) return { text: fault, actions: ['dismiss', 'check'], tone: 'warn' };
  if (state.streams.some(({ isSilent }) => isSilent)) return { text: strings.silent, actions: ['unblock'], tone: 'warn' };
  if (media.is === 'failed') return { text: strings.room.media[media.why], actions: mediaActions(media.why), tone: 'warn' };
  const lost = lostText(state, strings);
  return lost ? { text: lost, actions: ['devices'], tone: 'warn' } : null;
}

/** @param {State} state @param {Strings} strings */
function lostText({ media }, strings) {
  if (media.is !== 'on' || !media.lost) return null;
  return media.lost === 'audio' ? strings.room.lostMicrophone : strings.room.lostCamera;
}

/**
 * Returns the text about media that cannot be sent or, if everything can be sent, about media that cannot be received.
 * Null if there is no fault, and after the user has dismissed the notice.
 * @param {State} state
 * @param {Strings} strings
 */
function faultText({ faults, faultsRead, room }, strings) {
  if (faultsRead || faults.length === 0) return null;
  const words = strings.room.faults;
  const isFull = (/** @type {import('./types.js').Fault} */ { code }) => code === 'bandwidth_exceeded';
  for (const of of /** @type {const} */ (['camera', 'screen', 'video'])) {
    const mine = faults.find((fault) => fault.of === of);
    if (mine) return words[isFull(mine) ? /** @type {const} */ (`${of}Full`) : of];
  }
  const [first] = faults;
  const person = faults.length === 1 ? room?.people.find(({ connectionId }) => connectionId === first.connectionId) : undefined;
  const what = faults.every(({ isScreen }) => isScreen) ? 'screens' : 'others';
  // Say that receiving failed for good only if no stream is still being retried.
  const tried = faults.find(({ isFinal }) => !isFinal);
  const sentence = /** @type {const} */ (`${what}${!tried ? 'Final' : isFull(tried) ? 'Full' : ''}`);
  return words[sentence](person?.displayName ?? '');
}

/** @param {import('./types.js').MediaTrouble} why @returns {Action[]} */
export function mediaActions(why) {
  return why === 'missing' || why === 'busy' ? ['openMedia', 'openVoice'] : ['openMedia'];
}

/** @param {import('./types.js').Trouble} trouble @param {Strings} strings */
function troubleText({ code, message, seconds }, strings) {
  const known = strings.room.troubles[/** @type {'not_found'} */ (code)];
  const text = known ?? (message || strings.troubles.unknown);
  return seconds ? strings.tryingIn(text, seconds) : text;
}

/** @param {{code: string, message: string}} link @param {Strings} strings @returns {Notice} */
function closedNotice({ code, message }, strings) {
  const text = tokenText(code, strings) ?? strings.troubles[/** @type {'replaced'} */ (code)];
  switch (code) {
    case 'version_unsupported': return { text, actions: ['reload'], tone: 'bad' };
    // The server's message says when the ban ends.
    case 'banned': return { text: message ? `${text} ${message}` : text, actions: [], tone: 'bad' };
    case 'forbidden_origin': return { text, actions: [], tone: 'bad' };
    case 'replaced': return { text, actions: ['takeOver'], tone: 'bad' };
    case 'connect_failed': return { text, actions: ['retryLink', 'check'], tone: 'bad' };
    default: return { text: text ?? (message || strings.troubles.connect_failed), actions: isOfToken(code) ? [] : ['retryLink'], tone: 'bad' };
  }
}

/**
 * Returns how the visit ended, and what to do next; null if it has not ended.
 * @param {State} state
 * @param {Strings} strings
 * @returns {{title: string, text: string, actions: Action[]} | null}
 */
export function endingOf(state, strings) {
  const { place } = state;
  if (place.is !== 'over') return null;
  const words = strings.room.over;
  const [title, text] = invitationEnding(state, place, strings) ?? words[/** @type {'left'} */ (place.why)]
    ?? [words.unknown[0], place.message || words.unknown[1]];
  const isFinal = final.includes(place.why) || isOfToken(place.why) || (state.hasToken && place.why === 'removed');
  /** @type {Action[]} */
  const actions = isFinal ? [] : ['again'];
  return { title, text, actions: maySeeRooms(state) ? [...actions, 'otherRooms'] : actions };
}

/**
 * Returns the title and the text for the end of a visit that began with an application's token. Null if they are the
 * same as without a token.
 * @param {State} state
 * @param {{why: string, message: string}} place
 * @param {Strings} strings
 */
function invitationEnding({ hasToken }, { why, message }, strings) {
  const words = strings.room.over;
  if (isOfToken(why)) return [words.invitation[0], tokenText(why, strings) ?? (message || words.invitation[1])];
  if (!hasToken) return null;
  if (why === 'removed') return [words.removed[0], words.invitation[1]];
  return why === 'room_not_found' ? words.roomEnded : null;
}

/** @param {string} code */
const isOfToken = (code) => code.startsWith('token_');

/** @param {string} code @param {Strings} strings */
const tokenText = (code, strings) => strings.room.troubles[/** @type {'token_expired'} */ (code)];

/**
 * Returns whether to link to the list of other rooms. Users with an application's token did not choose this room, and
 * the list cannot be shown in a frame.
 * @param {State} state
 */
export const maySeeRooms = ({ hasToken, isFramed }) => !hasToken && !isFramed;

/**
 * Returns the hint under the level meter: one sentence about the state of the microphone or camera, or an empty
 * string.
 * @param {State} state
 * @param {Strings} strings
 */
export function deviceHint(state, strings) {
  const { media, muted, sound } = state;
  if (media.is === 'failed') return strings.room.joinWithout;
  if (media.is !== 'on') return '';
  const lost = lostText(state, strings);
  if (lost) return lost;
  if (muted) return strings.room.mutedHint;
  return sound === 'silent' ? strings.room.unheard : '';
}
