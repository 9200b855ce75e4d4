// One page of the people nearby: the server's list with all later changes applied.

/** @typedef {import('../signaling/people-messages.js').NearbyRow} NearbyRow */
/** @typedef {import('../signaling/people-messages.js').DistanceUnit} DistanceUnit */
/** @typedef {{people: NearbyRow[], next?: string, unit: DistanceUnit, radius: number}} Page */

export class NearbyPage {
  /** @type {Map<string, NearbyRow>} */
  #rows;
  /** @type {string[]} */
  #order;
  /** @type {string | undefined} */
  #next;
  #unit;
  #radius;

  /** @param {any} list a `nearby.list` */
  constructor({ people, next, unit, radius }) {
    this.#rows = byId(people);
    this.#order = [...this.#rows.keys()];
    this.#next = next;
    this.#unit = unit;
    this.#radius = radius;
  }

  /** @param {any} changed a `nearby.changed` */
  apply({ people, gone = [], order = [], next }) {
    for (const [personId, row] of byId(people)) this.#rows.set(personId, row);
    for (const personId of gone) this.#rows.delete(personId);
    this.#order = order.filter((/** @type {string} */ personId) => this.#rows.has(personId));
    // Forget people who are no longer on the page: if they return, the server sends their complete rows again.
    const listed = new Set(this.#order);
    for (const personId of this.#rows.keys()) if (!listed.has(personId)) this.#rows.delete(personId);
    this.#next = next;
  }

  /** @returns {Page} */
  get value() {
    const people = this.#order.flatMap((personId) => this.#rows.get(personId) ?? []);
    return { people, ...this.#next === undefined ? {} : { next: this.#next }, unit: this.#unit, radius: this.#radius };
  }
}

/** @param {NearbyRow[]} people @returns {Map<string, NearbyRow>} */
const byId = (people) => new Map(people.map((row) => [row.personId, row]));
