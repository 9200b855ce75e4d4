// The runner of a page's state machine.
import assert from 'node:assert/strict';
import test from 'node:test';
import { run } from '../../app/shared/run.js';

/** A state machine that counts. `until` is the time when the page must be drawn again. */
function counter(until = () => null) {
  const seen = [];
  const machine = run({
    state: 0,
    step: (state, { by }) => [state + by, [{ do: 'note', by }, ...(by > 1 ? [{ do: 'again' }] : [])]],
    draw(state, now) {
      seen.push(`draw ${state}`);
      return until(state, now);
    },
    carryOut: { note: ({ by }) => seen.push(`note ${by} at ${machine.state}`), again: () => machine.dispatch({ by: 1 }) },
  });
  return { machine, seen };
}

test('an event is drawn before its effects are carried out, and an effect may be another event', () => {
  const { machine, seen } = counter();
  machine.render();
  machine.dispatch({ by: 2 });
  assert.equal(machine.state, 3);
  assert.deepEqual(seen, ['draw 0', 'draw 2', 'note 2 at 2', 'draw 3', 'note 1 at 3']);
});

test('a countdown is drawn again at the times it returns, and not twice at once', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const { machine, seen } = counter((_, now) => (now < 2500 ? now + 1000 : null));
  machine.render();
  machine.render();
  t.mock.timers.tick(500);
  machine.dispatch({ by: 1 });
  seen.length = 0;
  t.mock.timers.tick(1000);
  assert.deepEqual(seen, [], 'the page was drawn half a second ago');
  t.mock.timers.tick(10);
  assert.deepEqual(seen, ['draw 1']);
  t.mock.timers.tick(60_000);
  assert.equal(seen.length, 2, 'the page is drawn until the countdown is over');
});
