// Runs a page's machine: an event and the time go in, the next state is drawn, and then what it wants is done. Its one
// invariant: whatever an effect looks at shows the state that wanted it, or a later one.

/** So much after the moment for which it was put off (milliseconds): timers may come early. */
const late = 5;

/**
 * @template State, Event
 * @param {object} page
 * @param {State} page.state the first
 * @param {(state: State, event: Event, now: number) => [State, {do: string}[]]} page.step
 * @param {(state: State, now: number) => number | null} page.draw says until when the picture holds; null: until something happens
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
