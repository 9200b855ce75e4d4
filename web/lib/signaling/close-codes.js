// What the server's close codes mean for the next attempt to connect (protocol §2).

/** The server's close code for a message that it cannot accept. */
export const malformed = 4400;
/** The server's close code if it restarts, or if a node of a cluster sends the client away. */
export const serviceRestart = 1012;
/** Close codes after which the same hello, or after 1009 the same message, would be rejected again. */
export const finalCodes = new Set([malformed, 4401, 4403, 4409, 4413, 1009]);

/** How long to pause after close codes 4408 and 4429 if the server does not request another pause (milliseconds). */
const politePauseMs = 10_000;

/** @param {number} code @returns {number} the minimum pause if the server does not request one (milliseconds) */
export const pauseAfter = (code) => (code === 4408 || code === 4429 ? politePauseMs : 0);
