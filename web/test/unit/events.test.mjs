import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Emitter, OTEvent } from '../../lib/events.js';

/** @param {Emitter} emitter @param {string} name */
const fire = (emitter, name) => emitter.dispatch(new OTEvent(name));

describe('Emitter', () => {
  test('takes a name, several names or an object of handlers, and can be chained', () => {
    const emitter = new Emitter();
    /** @type {string[]} */
    const heard = [];
    const same = emitter
      .on('one', () => heard.push('one'))
      .on('two three', ({ type }) => heard.push(type))
      .once({ four: () => heard.push('four') });
    assert.equal(same, emitter);
    for (const name of ['one', 'two', 'three', 'four', 'four']) fire(emitter, name);
    assert.deepEqual(heard, ['one', 'two', 'three', 'four']);
  });

  test('calls handlers with their context, and with itself by default', () => {
    const emitter = new Emitter();
    const context = { name: 'context' };
    /** @type {unknown[]} */
    const seen = [];
    /** @this {unknown} */
    function handler() { seen.push(this); }
    emitter.on('a', handler, context).on({ a: handler }, context).on('a', handler);
    fire(emitter, 'a');
    assert.deepEqual(seen.map((value) => value === context), [true, true, false]);
    assert.equal(seen[2], emitter);
  });

  test('removes one handler, those of a name, those of a context, or all', () => {
    const emitter = new Emitter();
    let calls = 0;
    const handler = () => { calls += 1; };
    const context = {};
    emitter.on('a', handler).on('a', handler, context).on('b', handler);
    emitter.off('a', handler, context);
    fire(emitter, 'a');
    assert.equal(calls, 1);
    emitter.off('a', handler);
    fire(emitter, 'a');
    assert.equal(calls, 1);
    emitter.off();
    fire(emitter, 'b');
    assert.equal(calls, 1);
  });

  test('does not call a handler that another one removed or added during the event', () => {
    const emitter = new Emitter();
    /** @type {string[]} */
    const heard = [];
    emitter.on('a', () => {
      heard.push('first');
      emitter.on('a', () => heard.push('late'));
    });
    fire(emitter, 'a');
    assert.deepEqual(heard, ['first']);
  });

  test('runs the default action after the handlers, unless one of them prevented it', () => {
    const emitter = new Emitter();
    /** @type {string[]} */
    const order = [];
    emitter.on('a', () => order.push('handler'));
    emitter.dispatch(new OTEvent('a', {}, true), () => order.push('default'));
    assert.deepEqual(order, ['handler', 'default']);
    emitter.on('a', (event) => event.preventDefault());
    emitter.dispatch(new OTEvent('a', {}, true), () => order.push('default'));
    assert.deepEqual(order, ['handler', 'default', 'handler']);
  });

  test('cannot prevent events that are not cancelable', () => {
    const emitter = new Emitter();
    let ran = false;
    emitter.on('a', (event) => event.preventDefault());
    emitter.dispatch(new OTEvent('a'), () => { ran = true; });
    assert.equal(ran, true);
  });

  test('gives events their type, target and members', () => {
    const emitter = new Emitter();
    /** @type {any} */
    let seen;
    emitter.on('a', (event) => { seen = event; });
    emitter.dispatch(new OTEvent('a', { reason: 'because' }, true));
    assert.deepEqual([seen.type, seen.target, seen.reason, seen.cancelable, seen.isDefaultPrevented()], ['a', emitter, 'because', true, false]);
  });

  test('still calls the other handlers when one throws', () => {
    const emitter = new Emitter();
    const { reportError } = globalThis;
    /** @type {unknown[]} */
    const reported = [];
    globalThis.reportError = (error) => { reported.push(error); };
    let heard = false;
    emitter.on('a', () => { throw new Error('mine'); }).on('a', () => { heard = true; });
    fire(emitter, 'a');
    globalThis.reportError = reportError;
    assert.equal(heard, true);
    assert.equal(reported.length, 1);
  });

  test('rejects a handler that is not a function', () => {
    assert.throws(() => new Emitter().on('a', /** @type {any} */ ('b')), /Pass a function as the handler of on\('a', …\)/);
  });
});
