// Detects the active speaker from everyone's audio levels. The caller passes in the levels and the times.

/** A level below this is background noise; 0 to 1, linear. */
const quiet = 0.02;
/** While no new level arrives, the smoothed level halves in this time (milliseconds). */
const halfLife = 300;
/**
 * To replace the current speaker, another person must be louder by the factor `margin`. A speaker stays for at least
 * `leastTime` (milliseconds).
 */
const margin = 1.5;
const leastTime = 1500;

export class ActiveSpeaker {
  /** @type {Map<string, {level: number, at: number}>} */
  #levels = new Map();
  /** @type {string | null} */
  current = null;
  #since = -Infinity;

  /**
   * @param {string} connectionId
   * @param {number} level
   * @param {number} now
   * @returns {boolean} whether the active speaker has changed
   */
  heard(connectionId, level, now) {
    const before = this.#levelOf(connectionId, now);
    // Smooth the level, so that speech counts and a short click does not.
    this.#levels.set(connectionId, { level: before + (level - before) * 0.3, at: now });
    const mine = this.#levelOf(connectionId, now);
    if (connectionId === this.current || mine < quiet || now - this.#since < leastTime) return false;
    if (this.current !== null && mine < this.#levelOf(this.current, now) * margin) return false;
    this.current = connectionId;
    this.#since = now;
    return true;
  }

  /** @param {string} connectionId @returns {boolean} whether the active speaker has changed */
  left(connectionId) {
    this.#levels.delete(connectionId);
    if (this.current !== connectionId) return false;
    this.current = null;
    this.#since = -Infinity;
    return true;
  }

  /** @param {string} connectionId @param {number} now */
  #levelOf(connectionId, now) {
    const known = this.#levels.get(connectionId);
    return known ? known.level * 0.5 ** ((now - known.at) / halfLife) : 0;
  }
}
