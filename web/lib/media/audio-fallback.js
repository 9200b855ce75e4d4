// OpenTok's audio fallback for publishers: decides when to stop the video so that a slow network still carries the audio, and when
// to send it again.
// Pure functions of the state and the time in milliseconds.

/**
 * How long the network must stay too slow after the warning before the video stops. In this time, congestion control
 * may still adapt.
 */
const warningMs = 5000;
/** The minimum pause: how long the network must be fast enough before the video resumes. */
const shortestPauseMs = 5000;
/**
 * If the video stops again within this time after it resumed, it resumed too early, so the next pause is twice as
 * long.
 */
const trialMs = 30_000;
/**
 * Maximum pause. Without a maximum, the video would be tried ever less often, and an improvement of the network would
 * go unnoticed.
 */
const longestPauseMs = 60_000;

/**
 * The state of the fallback: `sending` ⇄ `warned` → `stopped` → `sending`.
 * - `pauseMs`: how long the network must be fast enough before the video resumes.
 * - `resumedAt`: when the fallback last resumed the video; -Infinity if it has not.
 * - `stopAt`: when the video stops if the network stays too slow.
 * - `resumeAt`: when the video resumes if the network stays fast enough; null while it is too slow even for the audio.
 * @typedef {{pauseMs: number, resumedAt: number}} History
 * @typedef {History & ({name: 'sending'} | {name: 'warned', stopAt: number} | {name: 'stopped', resumeAt: number | null})} Fallback
 */

/** @type {Fallback} */
export const unstopped = Object.freeze({ name: 'sending', pauseMs: shortestPauseMs, resumedAt: -Infinity });

/**
 * Returns the next state. Call this when `isTooSlow` changes, and at the time that `dueAt` returns for the state.
 * @param {Fallback} state
 * @param {number} now
 * @param {boolean} isTooSlow whether the network is too slow for the media being sent
 * @returns {Fallback}
 */
export function advance(state, now, isTooSlow) {
  const { pauseMs, resumedAt } = state;
  switch (state.name) {
    case 'sending':
      return isTooSlow ? { name: 'warned', stopAt: now + warningMs, pauseMs, resumedAt } : state;
    case 'warned':
      if (!isTooSlow) return { name: 'sending', pauseMs, resumedAt };
      if (now < state.stopAt) return state;
      return { name: 'stopped', resumeAt: null, pauseMs: pauseAfter(state, now), resumedAt };
    case 'stopped':
      if (isTooSlow) return { ...state, resumeAt: null };
      if (state.resumeAt === null) return { ...state, resumeAt: now + pauseMs };
      return now < state.resumeAt ? state : { name: 'sending', pauseMs, resumedAt: now };
  }
}

/** @param {History} history @param {number} now */
function pauseAfter({ pauseMs, resumedAt }, now) {
  return now - resumedAt < trialMs ? Math.min(longestPauseMs, 2 * pauseMs) : shortestPauseMs;
}

/**
 * @param {Fallback} state
 * @returns {number | null} when to call `advance` even if `isTooSlow` has not changed; null: only when it changes
 */
export function dueAt(state) {
  if (state.name === 'warned') return state.stopAt;
  return state.name === 'stopped' ? state.resumeAt : null;
}

/**
 * Returns OpenTok's event for a transition; null if the two states have the same name.
 * @param {Fallback} before
 * @param {Fallback} after
 * @returns {{type: string, reason?: string} | null}
 */
export function eventOf(before, after) {
  if (before.name === after.name) return null;
  if (after.name === 'warned') return { type: 'videoDisableWarning' };
  if (after.name === 'stopped') return { type: 'videoDisabled', reason: 'quality' };
  return before.name === 'warned' ? { type: 'videoDisableWarningLifted' } : { type: 'videoEnabled', reason: 'quality' };
}
