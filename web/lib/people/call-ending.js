// Handles a call that the server no longer has. Before the call is ended on this device, waits for the server's
// message with the outcome, which may be on its way.

/** @typedef {import('./call.js').Call} Call */

/**
 * How long to wait after the ring timeout for the server to report the end of the call, before the call is ended on
 * this device (milliseconds). The server reports it unless the connection is lost.
 */
export const ringingGrace = 5000;
/** How long to wait for the server to report the end of a call (milliseconds). */
export const endingGrace = 5000;

/**
 * If an error means that the server no longer has a call, waits until the server has reported the end of the call, for
 * at most `endingGrace`. Otherwise does not wait.
 * @param {Call} call
 * @param {import('../clock.js').Timers} timers the call's timers
 * @param {any} error the server's answer
 * @param {string[]} codes the error codes that mean that the server no longer has the call
 * @returns {Promise<boolean>} whether the call is over
 */
export async function endIsReported(call, timers, error, codes) {
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
export function lossOf({ code, at }) {
  return code === 'elsewhere' && at === undefined ? 'answeredElsewhere' : 'connectionLost';
}
