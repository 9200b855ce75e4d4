// The people who wait in the lobby, as a host sees them: all of them in the panel of people, and one at a time on a card above the
// stage. Part of the state machine in `state.js`.
//
// Invariant: the card shows the same person until that person no longer waits, and takes a press only for a person who has been
// on it, in sight, for a moment. So a press that was meant for one person never admits another.
import { inside } from './room-state.js';

/** @typedef {import('./types.js').State} State */
/** @typedef {import('./types.js').Event} Event */
/** @typedef {import('./types.js').Step} Step */
/** @typedef {import('./types.js').Handlers} Handlers */

/** A knock makes at most one sound in this time, however many people knock. */
const knockRest = 4_000;
/** Knocks that are kept, as many as a lobby has places (protocol §15). */
const keptKnocks = 100;
/** For this time (milliseconds) the card ignores presses after it has appeared or changed: nobody reads a name and presses sooner. */
const cardRest = 700;

/** @type {Handlers} */
export const handlers = {
  knock: inside(knocked),
  admit: inside((state, { connectionId }) => answered(state, 'admit', connectionId)),
  deny: inside((state, { connectionId }) => answered(state, 'deny', connectionId)),
  answerCard: inside((state, { how, connectionId }) => cardAnswered(state, how, connectionId)),
  // A card that has changed since then has its own time.
  cardReady: inside((state, { card }) => [state.card === card ? { ...state, card: { ...card, isReady: true } } : state, []]),
};

/** @param {State} state @param {Event} event @param {number} now @returns {Step} */
function knocked(state, { connectionId, displayName, waiting }, now) {
  const others = state.knocks.filter((one) => one.connectionId !== connectionId);
  if (!waiting) return [{ ...state, knocks: others }, []];
  const isHeard = now - state.knockedAt >= knockRest;
  const knock = { connectionId, displayName };
  // A person who is reported again keeps their place.
  const isKnown = others.length < state.knocks.length;
  const knocks = isKnown ? state.knocks.map((one) => (one.connectionId === connectionId ? knock : one)) : [...others, knock].slice(0, keptKnocks);
  return [{ ...state, knocks, knockedAt: isHeard ? now : state.knockedAt }, isHeard ? [{ do: 'knockSound' }] : []];
}

/** @param {State} state @param {'admit' | 'deny'} how @param {string} connectionId @returns {Step} */
function answered(state, how, connectionId) {
  if (!state.knocks.some((one) => one.connectionId === connectionId)) return [state, []];
  // The knock disappears when the server says so, because admitting may fail in a full room.
  return [state, [{ do: how, connectionId }]];
}

/**
 * @param {State} state @param {'admit' | 'deny'} how
 * @param {string} connectionId the person who was on the card when the press began
 * @returns {Step}
 */
function cardAnswered(state, how, connectionId) {
  const { card } = state;
  if (card?.connectionId !== connectionId || !card.isReady) return [state, []];
  // A double click answers once.
  return resting(answered(state, how, connectionId), connectionId);
}

/** @param {Step} step @param {string} connectionId who is on the card @returns {Step} */
function resting([state, effects], connectionId) {
  const card = { connectionId, isReady: false };
  return [{ ...state, card }, [...effects, { do: 'later', after: cardRest, event: { type: 'cardReady', card } }]];
}

/**
 * Returns a step with the card for it: the same person while they wait, otherwise the one who has waited longest. The panel
 * of people covers the card, which rests again when it reappears.
 * @param {State} before @param {Step} step @returns {Step}
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
