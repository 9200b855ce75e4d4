// This device's location. Sends the first fix, and then moves of at least 50 m, at most one every ten seconds. The
// server rounds locations to cells of 2 km, so sending more would only drain the battery.

/** @typedef {{latitude: number, longitude: number, accuracy?: number}} Fix */
/** @typedef {{sent: Fix | null, sentAt: number, waiting: Fix | null}} Moves */

/** Minimum distance between two locations sent (meters). The location of a phone at rest drifts by about as much. */
const leastMove = 50;
/** Minimum time between two moves sent (milliseconds). */
const leastPause = 10_000;
/** How long to wait before retrying a move that the server rejected (milliseconds). */
const retryPause = 60_000;
const earthRadius = 6_371_000;

/** @type {Moves} */
export const noMoves = { sent: null, sentAt: 0, waiting: null };

/**
 * Decides whether to send a fix. Returns the new state, the fix to send now (null for none), and after how many
 * milliseconds to call this again with a `fix` of null (null for never).
 * @param {Moves} moves
 * @param {Fix | null} fix a new fix, or null if the returned time has passed
 * @param {number} now
 * @returns {{moves: Moves, send: Fix | null, after: number | null}}
 */
export function moved(moves, fix, now) {
  const latest = fix ?? moves.waiting;
  if (!latest || (moves.sent && distance(moves.sent, latest) < leastMove)) return { moves: { ...moves, waiting: null }, send: null, after: null };
  const pause = moves.sent ? moves.sentAt + leastPause - now : 0;
  if (pause > 0) return { moves: { ...moves, waiting: latest }, send: null, after: pause };
  return { moves: { sent: latest, sentAt: now, waiting: null }, send: latest, after: null };
}

/**
 * Returns the great-circle distance in meters.
 * @param {Fix} one
 * @param {Fix} other
 */
export function distance(one, other) {
  const radians = (/** @type {number} */ degrees) => (degrees * Math.PI) / 180;
  const [north, east] = [radians(other.latitude - one.latitude), radians(other.longitude - one.longitude)];
  const half = Math.sin(north / 2) ** 2 + Math.cos(radians(one.latitude)) * Math.cos(radians(other.latitude)) * Math.sin(east / 2) ** 2;
  return 2 * earthRadius * Math.asin(Math.min(1, Math.sqrt(half)));
}

export class Position {
  #moves = noMoves;
  /** @type {number | null} */
  #watch = null;
  #timer = 0;

  /**
   * @param {(fix: Fix) => Promise<unknown>} send rejects if the server rejects the location
   * @param {(is: import('./types.js').Position) => void} tell
   */
  constructor(send, tell) {
    this.send = send;
    this.tell = tell;
  }

  start() {
    this.stop();
    if (!window.isSecureContext || !navigator.geolocation) {
      this.tell('insecure');
      return;
    }
    this.#watch = navigator.geolocation.watchPosition(
      ({ coords: { latitude, longitude, accuracy } }) => this.#look({ latitude, longitude, accuracy }),
      ({ code }) => this.#failed(code),
      { enableHighAccuracy: false, maximumAge: 60_000, timeout: 30_000 },
    );
  }

  stop() {
    if (this.#watch !== null) navigator.geolocation.clearWatch(this.#watch);
    this.#watch = null;
    this.#moves = noMoves;
    clearTimeout(this.#timer);
  }

  /** @param {Fix | null} fix */
  #look(fix) {
    const { moves, send, after } = moved(this.#moves, fix, Date.now());
    this.#moves = moves;
    if (after !== null) this.#lookAgain(after);
    if (send) this.#send(send);
  }

  /** @param {number} after */
  #lookAgain(after) {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#look(null), after);
  }

  /** @param {Fix} fix */
  async #send(fix) {
    const watch = this.#watch;
    try {
      await this.send(fix);
      if (watch === this.#watch) this.tell('on');
    } catch {
      if (watch !== this.#watch) return;
      // `send` has reported the error. The location may still be right (after a flight, for example), so retry it
      // later.
      this.#moves = { ...noMoves, waiting: fix };
      this.#lookAgain(retryPause);
    }
  }

  /** @param {number} code the code of a GeolocationPositionError; 1 means that access was denied */
  #failed(code) {
    // Unless access was denied, the error may be temporary. If a location was sent, it stays valid, and the watch
    // continues.
    if (code !== 1 && this.#moves.sent) return;
    this.stop();
    this.tell(code === 1 ? 'refused' : 'unavailable');
  }
}
