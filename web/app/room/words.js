// Turns a state of the page into text: the screen, the status line, the current problem, and the end of a visit. Pure.
import { handIsRaised } from './room-state.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./strings.js').Strings} Strings */
/** @typedef {'calm' | 'busy' | 'good' | 'warn' | 'bad'} Tone */
/** @typedef {{text: string, tone: Tone}} Status */
/** @typedef {'retryLink' | 'reload' | 'dismiss' | 'again' | 'back' | 'otherRooms' | 'openMedia' | 'openVoice' | 'turnOn' | 'unblock'} Way */
/** @typedef {{text: string, ways: Way[], tone: Tone}} Notice */

/** Ends after which joining again is of no use. */
const final = ['banned', 'room_banned', 'closed', 'not_permitted', 'room_not_found'];

/** @param {State} state @returns {'before' | 'room' | 'over'} */
export function screenOf({ place }) {
  if (place.is === 'in') return 'room';
  return place.is === 'over' ? 'over' : 'before';
}

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
  if (state.sharing === 'on') return { text: words.sharing, tone: 'good' };
  if (handIsRaised(state)) return { text: words.handUp, tone: 'good' };
  const others = (state.room?.people.length ?? 1) - 1;
  return others > 0 ? { text: words.here(others), tone: 'good' } : { text: words.alone, tone: 'calm' };
}

/**
 * Returns the problem to show above everything else, or null.
 * @param {State} state @param {Strings} strings @returns {Notice | null}
 */
export function noticeOf(state, strings) {
  const { link, media, trouble } = state;
  if (link.is === 'closed') return closedNotice(link, strings);
  if (trouble) return { text: troubleText(trouble, strings), ways: ['dismiss'], tone: 'warn' };
  if (state.place.is !== 'in') return null;
  if (state.streams.some(({ isSilent }) => isSilent)) return { text: strings.silent, ways: ['unblock'], tone: 'warn' };
  if (media.is === 'failed') return { text: strings.room.media[media.why], ways: mediaWays(media.why), tone: 'warn' };
  const lost = lostText(state, strings);
  return lost ? { text: lost, ways: [], tone: 'warn' } : null;
}

/** @param {State} state @param {Strings} strings */
function lostText({ media }, strings) {
  if (media.is !== 'on' || !media.lost) return null;
  return media.lost === 'audio' ? strings.room.lostMicrophone : strings.room.lostCamera;
}

/** @param {import('./types.js').MediaTrouble} why @returns {Way[]} */
export function mediaWays(why) {
  return why === 'missing' || why === 'busy' ? ['openMedia', 'openVoice'] : ['openMedia'];
}

/** @param {import('./types.js').Trouble} trouble @param {Strings} strings */
function troubleText({ code, message, seconds }, strings) {
  const known = strings.room.troubles[/** @type {'not_found'} */ (code)];
  const text = known ?? (message || strings.troubles.unknown);
  return seconds ? `${text} ${strings.tryingIn(seconds)}` : text;
}

/** @param {{code: string, message: string}} link @param {Strings} strings @returns {Notice} */
function closedNotice({ code, message }, strings) {
  const text = strings.room.troubles[/** @type {'token_expired'} */ (code)] ?? strings.troubles[/** @type {'replaced'} */ (code)];
  switch (code) {
    case 'version_unsupported': return { text, ways: ['reload'], tone: 'bad' };
    // The server's message says when the ban ends.
    case 'banned': return { text: message ? `${text} ${message}` : text, ways: [], tone: 'bad' };
    case 'forbidden_origin': return { text, ways: [], tone: 'bad' };
    default: return { text: text ?? (message || strings.troubles.connect_failed), ways: code.startsWith('token_') ? [] : ['retryLink'], tone: 'bad' };
  }
}

/**
 * Returns how the visit ended, and what to do next.
 * @param {State} state @param {Strings} strings @returns {{title: string, text: string, ways: Way[]} | null}
 */
export function endingOf({ place }, strings) {
  if (place.is !== 'over') return null;
  const known = strings.room.over[/** @type {'left'} */ (place.why)];
  const [title, text] = known ?? [strings.room.over.unknown[0], place.message || strings.room.over.unknown[1]];
  return { title, text, ways: final.includes(place.why) ? ['otherRooms'] : ['again', 'otherRooms'] };
}

/**
 * Returns what is wrong with the microphone or the camera in one sentence, or an empty text. Shown under the level meter.
 * @param {State} state @param {Strings} strings
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
