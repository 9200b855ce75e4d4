// The people in the lobby, as a host sees them: all of them in the People panel, and one at a time on a card above the stage. Part
// of the state machine in `state.js`.
//
// Invariant: the card shows the same person until that person no longer waits. It accepts a press only after that person has been
// visible on it for a moment, so a press that was meant for one person never admits another.
import { inside } from './room-state.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./types.js').Step} Step */
/** @typedef {import('./types.js').Handlers} Handlers */

/** Minimum time between two knock sounds (milliseconds), however many people knock. */
const knockRest = 4_000;
/** Maximum number of knocks to keep: the capacity of a lobby (protocol §15). */
const keptKnocks = 100;
/** How long the card ignores presses after it appeared, changed or was pressed (milliseconds). Reading a name and pressing takes longer. */
const cardRest = 700;

/** @type {Handlers} */
export const handlers = {
  knock: inside(knocked),
  admit: inside((state, { connectionId }) => answered(state, 'admit', connectionId)),
  deny: inside((state, { connectionId }) => answered(state, 'deny', connectionId)),
  answerCard: inside((state, { how, connectionId }) => cardAnswered(state, how, connectionId)),
  // If this delay belongs to an earlier card, ignore it: the new card has started another delay.
  cardReady: inside((state, { card }) => [state.card === card ? { ...state, card: { ...card, isReady: true } } : state, []]),
};

/** @param {State} state @param {Event} event @param {number} now @returns {Step} */
function knocked(state, { connectionId, displayName, waiting }, now) {
  const others = state.knocks.filter((one) => one.connectionId !== connectionId);
  if (!waiting) return [{ ...state, knocks: others }, []];
  const isHeard = now - state.knockedAt >= knockRest;
  const knock = { connectionId, displayName };
  // A person who is reported again keeps their position in the list.
  const isKnown = others.length < state.knocks.length;
  const knocks = isKnown ? state.knocks.map((one) => (one.connectionId === connectionId ? knock : one)) : [...others, knock].slice(0, keptKnocks);
  return [{ ...state, knocks, knockedAt: isHeard ? now : state.knockedAt }, isHeard ? [{ do: 'knockSound' }] : []];
}

/** @param {State} state @param {'admit' | 'deny'} how @param {string} connectionId @returns {Step} */
function answered(state, how, connectionId) {
  if (!state.knocks.some((one) => one.connectionId === connectionId)) return [state, []];
  // Keep the knock until the server reports the change, because admitting fails if the room is full.
  return [state, [{ do: how, connectionId }]];
}

/**
 * @param {State} state
 * @param {'admit' | 'deny'} how
 * @param {string} connectionId the person who was on the card when the press began
 * @returns {Step}
 */
function cardAnswered(state, how, connectionId) {
  const { card } = state;
  if (card?.connectionId !== connectionId || !card.isReady) return [state, []];
  // Ignore presses for a moment, because the second click of a double click must not answer again.
  return resting(answered(state, how, connectionId), connectionId);
}

/** @param {Step} step @param {string} connectionId the person on the card @returns {Step} */
function resting([state, effects], connectionId) {
  const card = { connectionId, isReady: false };
  return [{ ...state, card }, [...effects, { do: 'later', after: cardRest, event: { type: 'cardReady', card } }]];
}

/**
 * Returns the step with an updated card. The card keeps its person while that person waits. Otherwise it shows the
 * person who has waited longest; if nobody waits, there is no card. The card is hidden while the People panel is open.
 * When it reappears, it ignores presses for a moment again.
 * @param {State} before
 * @param {Step} step
 * @returns {Step}
 */
export function withCard(before, [state, effects]) {
  const { card, knocks } = state;
  const appears = before.panel === 'people' && state.panel !== 'people';
  if (knocks === before.knocks && !appears) return [state, effects];
  const same = knocks.find(({ connectionId }) => connectionId === card?.connectionId);
  if (same && !appears) return [state, effects];
  const next = same ?? knocks[0];
  return next ? resting([state, effects], next.connectionId) : [{ ...state, card: null }, effects];
}
