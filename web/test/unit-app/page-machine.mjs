// A page's state machine that records its effects, so that a test reads as a sequence of events.
export class PageMachine {
  now = 1_000_000;
  /** The effects of the most recent event. */
  effects = [];
  /** All effects so far. */
  done = [];
  #step;

  constructor(step, state) {
    this.#step = step;
    this.state = state;
  }

  tell(type, members = {}) {
    const from = this.state;
    const before = JSON.stringify(from);
    [this.state, this.effects] = this.#step(from, { type, ...members }, this.now);
    if (JSON.stringify(from) !== before) throw new Error(`${type} changed the state it was given`);
    this.done.push(...this.effects);
    return this;
  }

  /** The names of the most recent event's effects. */
  get wanted() {
    return this.effects.map((effect) => effect.do);
  }

  effect(what) {
    return this.effects.find((effect) => effect.do === what);
  }

  wants(what) {
    return this.effects.filter((effect) => effect.do === what);
  }

  wait(milliseconds) {
    this.now += milliseconds;
    return this;
  }
}
