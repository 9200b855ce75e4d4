// Runs the scripts of `protocol/scripts` (its README describes them) on a part of the SDK. Each part has a player, which gives
// it the inputs and translates what it does.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { FakeClock, settled } from './fake-clock.mjs';

/** @typedef {Record<string, any>} Item a word, which is the first member, and its details */
/**
 * @typedef {object} Player
 * @property {(input: Item, word: string) => void | Promise<void>} play
 * @property {() => any} [state] what a script compares with `is`
 * @property {Item[]} done what the part has done since this list was last emptied
 */

const protocol = new URL('../../../protocol/', import.meta.url);
const read = (/** @type {string} */ path) => readFileSync(new URL(path, protocol), 'utf8');
const idOf = (/** @type {string | number} */ number) => `${number}`.padStart(32, '0');
const expand = (/** @type {string} */ text) => text.replace(/"#(\d+)"/g, (_, number) => `"${idOf(number)}"`);
/** @param {any} value @param {string} placeholder @param {any} by */
const replaced = (value, placeholder, by) => JSON.parse(JSON.stringify(value).replaceAll(`"${placeholder}"`, JSON.stringify(by)));
const itemOf = (/** @type {string | Item} */ item) => (typeof item === 'string' ? { [item]: true } : item);
const wordOf = (/** @type {Item} */ item) => Object.keys(item)[0];

/** @param {any} value @param {any} changes @returns {any} a copy in which null removes a member */
function merged(value, changes) {
  if (typeof changes !== 'object' || changes === null || Array.isArray(changes)) return changes;
  const result = typeof value === 'object' && !Array.isArray(value) ? { ...value } : {};
  for (const [name, change] of Object.entries(changes)) {
    if (change === null) delete result[name];
    else result[name] = merged(result[name] ?? {}, change);
  }
  return result;
}

/** @param {any} actual @param {any} expected @returns {boolean} whether all members that are expected are there; null: it is absent */
function matches(actual, expected) {
  if (expected === null) return actual === undefined || actual === null;
  if (typeof expected !== 'object') return actual === expected;
  if (Array.isArray(expected)) return Array.isArray(actual) && actual.length === expected.length && expected.every((one, index) => matches(actual[index], one));
  return typeof actual === 'object' && actual !== null && Object.keys(expected).every((name) => matches(actual[name], expected[name]));
}

/** What goes to the server, what callers get, and what the application receives: the order within each of these is compared. */
const toServer = ['open', 'send', 'close'];
const toCallers = ['answered', 'failed'];
const channelOf = (/** @type {Item} */ item) => (toServer.includes(wordOf(item)) ? 0 : toCallers.includes(wordOf(item)) ? 1 : 2);
const inChannels = (/** @type {Item[]} */ items) => [0, 1, 2].flatMap((channel) => items.filter((item) => channelOf(item) === channel));

/**
 * @param {string} name of the file in `protocol/scripts`
 * @param {(settings: any, clock: FakeClock) => Player} make makes a player for one script
 */
export function runScripts(name, make) {
  const { messages = {}, starts = {}, scripts } = JSON.parse(expand(read(`scripts/${name}.json`)));
  /** @param {string} like @returns {any} */
  const example = (like) => {
    if (messages[like]) {
      const { like: other, ...members } = messages[like];
      return merged(example(other), members);
    }
    const { seq: _seq, ack: _ack, re: _re, ...members } = JSON.parse(read(`examples/server-${like}.json`));
    return members;
  };
  /** @param {Item} input `{server: name, …changes}` */
  const message = ({ but = {}, ...input }) => {
    const changes = Object.fromEntries(Object.entries(input).slice(1));
    const like = Object.values(input)[0];
    return merged(merged(like === 'error' ? { type: 'error', code: '', message: 'No.', retryable: false } : example(like), changes), but);
  };
  /** @param {any} value @returns {any} with the strings that `{length}` stands for */
  const lengthened = (value) => JSON.parse(JSON.stringify(value), (_, one) => (one && /^length(,of)?$/.test(Object.keys(one).join()) ? (one.of ?? 'x').repeat(one.length) : one));

  /** @param {Player} player @param {FakeClock} clock @param {any[]} steps @param {string} path */
  async function play(player, clock, steps, path) {
    for (const [index, step] of steps.entries()) {
      const place = `${path}[${index}]`;
      if (step.start) await play(player, clock, starts[step.start], step.start);
      else if (step.times) for (let round = 1; round <= step.times; round += 1) await play(player, clock, replaced(step.steps, '$round', idOf(round)), `${place}×${round}`);
      else await playStep(player, clock, step, place);
    }
  }

  /** @param {Player} player @param {FakeClock} clock @param {any[]} step @param {string} place */
  async function playStep(player, clock, [first, ...outputs], place) {
    const word = wordOf(itemOf(first));
    const input = lengthened(word === 'server' || word === 'answer' ? { [word]: message(itemOf(first)) } : itemOf(first));
    player.done.length = 0;
    if (word === 'sleep') clock.sleep(input.sleep);
    if (word === 'wait' || word === 'sleep') await clock.advance(input.wait ?? 0);
    else await player.play(input, word);
    for (let round = 0; round < 3; round += 1) await settled();
    const expected = outputs.map(itemOf);
    const state = expected.find((item) => 'is' in item);
    if (state) assert.deepEqual(player.state?.(), state.is, `${name} ${place}: the state`);
    const effects = inChannels(expected.filter((item) => !('is' in item) && !('...' in item)));
    const done = inChannels(player.done);
    const isComplete = !expected.some((item) => '...' in item);
    if (!isComplete || matches(done, effects)) return;
    assert.deepEqual(done, effects, `${name} ${place}: ${JSON.stringify(first)}`);
    assert.fail(`${name} ${place}: ${JSON.stringify(first)}`);
  }

  describe(`The scripts of ${name}`, () => {
    for (const script of scripts) {
      for (const each of script.each ?? [null]) {
        const title = script.each ? `${script.title}: ${JSON.stringify(each)}` : script.title;
        test(title, async () => {
          const steps = replaced(script.steps, '$each', each);
          const clock = new FakeClock();
          const player = make(script.settings ?? {}, clock);
          await play(player, clock, [...script.start ? [{ start: script.start }] : [], ...steps], 'steps');
        });
      }
    }
  });
}
