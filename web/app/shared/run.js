// Runs a page's state machine: takes an event and the time, draws the next state, then carries out its effects. Invariant:
// when an effect runs, the page already shows the state that requested it, or a later one.

/** Added to the delay of each timer (milliseconds), because timers may fire slightly early. */
const late = 5;

/**
 * @template State, Event
 * @param {object} page
 * @param {State} page.state the initial state
 * @param {(state: State, event: Event, now: number) => [State, {do: string}[]]} page.step
 * @param {(state: State, now: number) => number | null} page.draw draws the state. Returns when to draw again,
 *   on the same clock as `now` (milliseconds); null to wait for the next event
 * @param {Record<string, (effect: any) => void>} page.carryOut
 */
export function run({ state, step, draw, carryOut }) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let ticking;

  const render = () => {
    const now = Date.now();
    const until = draw(state, now);
    clearTimeout(ticking);
    if (until !== null) ticking = setTimeout(render, Math.max(0, until - now) + late);
  };

  return {
    get state() {
      return state;
    },
    render,
    /** @param {Event} event */
    dispatch(event) {
      const [next, effects] = step(state, event, Date.now());
      state = next;
      render();
      for (const effect of effects) carryOut[effect.do](effect);
    },
  };
}
