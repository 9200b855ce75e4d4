// The state of the page `/check`, as a pure function of events.
import { unmeasured } from '../../lib/check/verdicts.js';

/** @typedef {import('../../lib/check/verdicts.js').Measurements} Measurements */
/** @typedef {import('../../lib/check/verdicts.js').Row} Row */
/**
 * - `before`: nothing was tested yet. Next: `running`.
 * - `running`: next: `done`.
 * - `done`: next: `running`.
 * - `shared`: the result of a link is shown. Next: `running`.
 * @typedef {'before' | 'running' | 'done' | 'shared'} Phase
 */
/**
 * @typedef {object} State
 * @property {Phase} phase
 * @property {Measurements} measured
 * @property {Row[]} testing the rows of the network that are being tested
 * @property {number | null} secondsLeft of the measurement; null if none is running
 * @property {boolean} hasPlayed whether a sound was played, so that the person can say whether they heard it
 * @property {'copied' | 'copyFailed' | null} copying the outcome of the latest attempt to copy
 * @property {boolean} isBadLink whether the page was opened with a link that is not complete
 */
/**
 * @typedef {{type: 'start', at: number} | {type: 'known', known: Partial<Measurements>}
 *   | {type: 'testing', rows: Row[], secondsLeft?: number} | {type: 'done'} | {type: 'play'} | {type: 'answer', heard: boolean} | {type: 'copy', what: 'report' | 'link'} | {type: 'share'}
 *   | {type: 'copied'} | {type: 'copyFailed'}} Event
 */
/** @typedef {{do: 'check'} | {do: 'play'} | {do: 'copy', what: 'report' | 'link'} | {do: 'share'}} Effect */

/**
 * @param {object} page
 * @param {string} page.host
 * @param {string} page.browser
 * @param {Measurements | null} page.shared the result in the link with which the page was opened
 * @param {boolean} page.isBadLink
 * @returns {State}
 */
export function initial({ host, browser, shared, isBadLink }) {
  return {
    phase: shared ? 'shared' : 'before', measured: shared ?? { ...unmeasured, host, browser }, testing: [], secondsLeft: null,
    hasPlayed: false, copying: null, isBadLink,
  };
}

/**
 * @param {State} state
 * @param {Event} event
 * @param {{host: string, browser: string}} page
 * @returns {[State, Effect[]]}
 */
export function step(state, event, page) {
  switch (event.type) {
    case 'start': {
      if (state.phase === 'running') return [state, []];
      // What the person said about the speakers stays true.
      const speakers = state.phase === 'shared' ? 'untested' : state.measured.speakers;
      const measured = { ...unmeasured, ...page, at: event.at, speakers };
      return [{ ...state, phase: 'running', measured, testing: [], secondsLeft: null, copying: null, isBadLink: false }, [{ do: 'check' }]];
    }
    case 'known':
      return [state.phase === 'running' ? { ...state, measured: { ...state.measured, ...event.known } } : state, []];
    case 'testing': return [{ ...state, testing: event.rows, secondsLeft: event.secondsLeft ?? null }, []];
    case 'done': return [{ ...state, phase: 'done', testing: [], secondsLeft: null }, []];
    case 'play': return [{ ...state, hasPlayed: true }, [{ do: 'play' }]];
    case 'answer':
      if (state.phase === 'shared') return [state, []];
      return [{ ...state, measured: { ...state.measured, speakers: event.heard ? 'heard' : 'silent' }, copying: null }, []];
    case 'copy': return [state, [{ do: 'copy', what: event.what }]];
    case 'share': return [state, [{ do: 'share' }]];
    case 'copied':
    case 'copyFailed': return [{ ...state, copying: event.type }, []];
  }
}

/**
 * Returns whether a row is being tested. The camera and the microphone are tested until there is a result.
 * @param {State} state
 * @param {Row} row
 */
export function isRunning({ phase, measured, testing }, row) {
  if (phase !== 'running') return false;
  if (row === 'camera' || row === 'microphone') return measured[row] === 'untested';
  return testing.includes(row);
}

/**
 * Returns whether a row waits for its turn.
 * @param {State} state
 * @param {Row} row
 */
export function isWaiting({ phase, measured, testing }, row) {
  if (phase !== 'running' || testing.includes(row)) return false;
  switch (row) {
    case 'camera': case 'microphone': case 'speakers': return false;
    case 'up': case 'down': case 'delay': return measured.quality === 'untested';
    default: return measured[row] === 'untested';
  }
}
