// How a call ends that the server has for us no more, when nobody says so: not at once, for its end may be on its way.

/** @typedef {import('./call.js').Call} Call */

/** After it should have rung out (milliseconds): the server says so by itself, unless the line is gone. */
export const ringingGrace = 5000;
/** How long its end may be on its way (milliseconds). */
const endingGrace = 5000;

/**
 * @param {Call} call
 * @param {import('../clock.js').Timers} timers the call's own, which end with it
 * @param {any} error what the server answered
 * @param {string[]} codes those that mean this
 * @returns {Promise<boolean>} whether it is over, and said why
 */
export async function endIsTold(call, timers, error, codes) {
  if (!call.isOver && codes.includes(error?.code)) {
    await new Promise((resolve) => {
      call.once('ended', resolve);
      timers.set('ending', endingGrace, () => resolve(null));
    });
  }
  return call.isOver;
}

/**
 * How a call ends that could not be rejoined.
 * @param {any} error
 * @returns {import('./call.js').Outcome}
 */
export function lossOf({ code }) {
  return code === 'elsewhere' ? 'answeredElsewhere' : 'connectionLost';
}
