// The error class for all failures, and the conversion to OpenTok's names and numbers.

/**
 * @typedef {object} ErrorMembers
 * @property {string} [name]
 * @property {string | number} code a stable code of the protocol or of this SDK; for `OT_` errors, OpenTok's number
 * @property {string} message what is wrong and what to do next
 * @property {boolean} [retryable] whether the same request can succeed later
 * @property {number} [retryAfterMs]
 * @property {string} [at] for `elsewhere` in a cluster: the name of the node that does what was requested
 * @property {string} [reason] the code of the error that caused an `OT_` error; default: `code`, if it is a string
 * @property {unknown} [cause]
 */

/**
 * An error of the SDK. For errors of `OT`, `name` is one of OpenTok's `OT_…` names, `code` is OpenTok's number, and
 * `reason` is the code of the `ConfabError` that caused it, if there is one. For all other errors, such as those of a
 * `Client` or a `Roulette`, `name` is `ConfabError`, and `code` is a stable code of the protocol or of this SDK.
 */
export class ConfabError extends Error {
  /** @param {ErrorMembers} members */
  constructor({ name = 'ConfabError', code, message, retryable = false, retryAfterMs, at, reason, cause }) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = name;
    this.code = code;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
    this.at = at;
    this.reason = reason ?? (typeof code === 'string' ? code : undefined);
  }

  /** @param {any} message an `error` message of the server, or the JSON body of its HTTP error response */
  static fromWire({ code, message, retryable, retryAfterMs, at }) {
    return new ConfabError({ code, message, retryable, retryAfterMs, at });
  }
}

/**
 * @param {unknown} error
 * @returns {boolean} true if the client had to connect as a new one before the server answered the request. The server
 *   may nevertheless have received the request
 */
export function isRestart(error) {
  return error instanceof ConfabError && error.code === 'connection_restarted';
}

/** @param {string} name @param {number} code @param {string} message @param {unknown} [cause] */
export function otFailure(name, code, message, cause) {
  return new ConfabError({ name, code, message, cause });
}

/** @param {number} code @returns {ConfabError} the error for a socket that the server closed without sending an error first */
export function closedBy(code) {
  return new ConfabError({ code: `closed_${code}`, message: `The server closed the connection (close code ${code}). Reload the page.` });
}

/**
 * @param {unknown} cause
 * @returns {ConfabError} the error for a URL or browser that cannot open a WebSocket
 */
export function unusable(cause) {
  return new ConfabError({ code: 'connect_failed', message: `The connection could not be opened: ${cause}. Check the URL.`, cause });
}

/** @typedef {'connect' | 'publish' | 'subscribe' | 'signal' | 'forceDisconnect' | 'forceUnpublish' | 'forceMute'} Call */

/**
 * Maps error codes to OpenTok's name and number, for all requests. An entry in `byCall` for the same code takes
 * precedence.
 * @type {Record<string, [string, number]>}
 */
const always = {
  session_invalid: ['OT_INVALID_SESSION_ID', 1005],
  session_full: ['OT_CONNECTION_LIMIT_EXCEEDED', 1027],
  bandwidth_exceeded: ['OT_CONNECTION_LIMIT_EXCEEDED', 1027],
  too_many_connections: ['OT_CONNECTION_LIMIT_EXCEEDED', 1027],
  banned: ['OT_PERMISSION_DENIED', 1004],
  not_joined: ['OT_NOT_CONNECTED', 1010],
  not_connected: ['OT_NOT_CONNECTED', 1010],
  left: ['OT_NOT_CONNECTED', 1010],
  connection_restarted: ['OT_NOT_CONNECTED', 1010],
  connect_failed: ['OT_CONNECT_FAILED', 1006],
  signal_invalid: ['OT_INVALID_PARAMETER', 400],
  signal_too_large: ['OT_INVALID_PARAMETER', 413],
  message_too_large: ['OT_INVALID_PARAMETER', 413],
  malformed: ['OT_INVALID_PARAMETER', 1011],
};

/**
 * @type {Record<Call, Record<string, [string, number]>>} maps error codes to OpenTok's name and number, for one
 *   kind of request
 */
const byCall = {
  connect: {},
  publish: { not_permitted: ['OT_PERMISSION_DENIED', 1500] },
  subscribe: { not_permitted: ['OT_PERMISSION_DENIED', 1500], not_found: ['OT_STREAM_NOT_FOUND', 1604] },
  signal: {
    not_permitted: ['OT_PERMISSION_DENIED', 1500], not_found: ['OT_NOT_FOUND', 404],
    not_joined: ['OT_NOT_CONNECTED', 500], not_connected: ['OT_NOT_CONNECTED', 500],
    rate_limited: ['OT_RATE_LIMIT_EXCEEDED', 429],
  },
  forceDisconnect: { not_permitted: ['OT_PERMISSION_DENIED', 1520], not_found: ['OT_INVALID_PARAMETER', 1520] },
  forceUnpublish: { not_permitted: ['OT_PERMISSION_DENIED', 1530], not_found: ['OT_INVALID_PARAMETER', 1535] },
  forceMute: { not_permitted: ['OT_PERMISSION_DENIED', 1540], not_found: ['OT_INVALID_PARAMETER', 1540] },
};

/** @type {Record<Call, [string, number]>} OpenTok's name and number for codes in neither `byCall` nor `always` */
const otherwise = {
  connect: ['OT_CONNECT_FAILED', 1006],
  publish: ['OT_STREAM_CREATE_FAILED', 2000],
  subscribe: ['OT_UNEXPECTED_SERVER_RESPONSE', 2000],
  signal: ['OT_UNEXPECTED_SERVER_RESPONSE', 2000],
  forceDisconnect: ['OT_UNEXPECTED_SERVER_RESPONSE', 2000],
  forceUnpublish: ['OT_UNEXPECTED_SERVER_RESPONSE', 2000],
  forceMute: ['OT_UNEXPECTED_SERVER_RESPONSE', 2000],
};

/**
 * Converts an error to OpenTok's name and number. Returns an error that already has an `OT_` name unchanged.
 * @param {unknown} error
 * @param {Call} call
 * @returns {ConfabError}
 */
export function otError(error, call) {
  if (!(error instanceof ConfabError)) {
    return otFailure(...otherwise[call], `${error instanceof Error ? error.message : error}`, error);
  }
  if (error.name.startsWith('OT_')) return error;
  const reason = String(error.code);
  const [name, code] = reason.startsWith('token_')
    ? ['OT_AUTHENTICATION_ERROR', 1004]
    : byCall[call][reason] ?? always[reason] ?? otherwise[call];
  const { message, retryable, retryAfterMs } = error;
  return new ConfabError({ name: String(name), code: Number(code), message, retryable, retryAfterMs, reason, cause: error });
}
