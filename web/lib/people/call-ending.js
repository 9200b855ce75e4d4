// Handles a call that the server no longer has. Waits for the end of the call, which may be on its way, before the
// call is ended here.

/** @typedef {import('./call.js').Call} Call */

/**
 * How long after the ring timeout (milliseconds) to wait for the server, which reports the end unless the connection is gone.
 */
export const ringingGrace = 5000;
/** How long to wait for the server to report the end of a call (milliseconds). */
export const endingGrace = 5000;

/**
 * @param {Call} call
 * @param {import('../clock.js').Timers} timers the call's timers
 * @param {any} error the server's answer
 * @param {string[]} codes the error codes that mean that the server no longer has the call
 * @returns {Promise<boolean>} true if the end of the call has arrived
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
 * Returns the outcome of a call that could not be rejoined.
 * @param {any} error
 * @returns {import('./call.js').Outcome}
 */
export function lossOf({ code }) {
  return code === 'elsewhere' ? 'answeredElsewhere' : 'connectionLost';
}
