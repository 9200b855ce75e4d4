// The states of the operator's page.
import assert from 'node:assert/strict';
import test from 'node:test';
import { initial, merge, step, tabAfter, tabsOf } from '../../app/admin/state.js';
import { adminStringsFor } from '../../app/admin/strings.js';
import { noteText } from '../../app/admin/words.js';

const token = 'f00dfeedf00dfeedf00dfeedf00dfeed';
const overview = (from, to, startedAt = 0) => ({
  version: '0.1.0', now: to, startedAt, intervalMs: 1, keptSamples: 5,
  samples: Array.from({ length: to - from + 1 }, (_, index) => ({ at: from + index, clients: index })),
});
const report = (id, closedAt) => ({ id, at: 1, closedAt, matchId: 'm', reason: 'rude', against: 'b', againstAddress: '', by: 'a', byAddress: '', banned: false, lines: [] });

/** Applies events; returns the state and all effects. */
function after(events, state = initial()) {
  const effects = [];
  for (const event of events) {
    const [next, added] = step(state, event);
    state = next;
    effects.push(...added);
  }
  return { state, effects };
}
const loads = (effects) => effects.filter((effect) => effect.do === 'load').map(({ what, query }) => what + query);
const opened = () => after([{ type: 'enter', token }, { type: 'loaded', what: 'overview', data: overview(1, 3) }, { type: 'loaded', what: 'reports', data: { reports: [report(1), report(2, 5)], openCount: 120 } }]).state;

test('the page opens with the first answer, and not before', () => {
  const entered = after([{ type: 'enter', token }]);
  assert.deepEqual([entered.state.phase, entered.effects], ['opening', [{ do: 'keep', token }, { do: 'load', what: 'overview', query: '' }]]);
  assert.deepEqual(after([{ type: 'enter', token: 'other' }], entered.state).effects, [], 'one attempt at a time');
  const open = after([{ type: 'loaded', what: 'overview', data: overview(1, 3) }], entered.state);
  assert.deepEqual([open.state.phase, loads(open.effects)], ['open', ['reports']]);
});

test('without a token nothing is sent', () => {
  const { state, effects } = after([{ type: 'enter', token: '' }]);
  assert.deepEqual([state.phase, state.trouble, effects], ['locked', 'missing', []]);
});

test('a wrong token is forgotten, at first and later, with everything that was loaded', () => {
  for (const before of [after([{ type: 'enter', token }]).state, opened()]) {
    const { state, effects } = after([{ type: 'failed', trouble: 'wrong' }], before);
    assert.deepEqual([state.phase, state.trouble, state.reports, effects], ['locked', 'wrong', null, [{ do: 'forget' }]]);
  }
  const { state, effects } = after([{ type: 'lock' }], opened());
  assert.deepEqual([state, effects], [initial(), [{ do: 'forget' }]]);
  assert.deepEqual(after([{ type: 'loaded', what: 'bans', data: { count: 0, bans: [] } }], state).state, initial(), 'late answers change nothing');
});

test('a server that does not answer keeps an open page, and says so', () => {
  const { state } = after([{ type: 'failed', trouble: 'unreachable' }], opened());
  assert.deepEqual([state.phase, state.isStale], ['open', true]);
  assert.equal(after([{ type: 'loaded', what: 'reports', data: { reports: [], openCount: 0 } }], state).state.isStale, false);
  const opening = after([{ type: 'enter', token }, { type: 'failed', trouble: { text: 'Too many.' } }]).state;
  assert.deepEqual([opening.phase, opening.trouble], ['locked', { text: 'Too many.' }]);
});

test('each tick loads the new samples, the reports, and what is shown', () => {
  assert.deepEqual(loads(after([{ type: 'tick' }]).effects), []);
  const { state, effects } = after([{ type: 'tick' }, { type: 'tab', tab: 'sessions' }, { type: 'tab', tab: 'sessions' }], opened());
  assert.deepEqual(loads(effects), ['overview?since=3', 'reports', 'sessions']);
  assert.deepEqual(loads(after([{ type: 'tick' }], state).effects), ['overview?since=3', 'reports', 'sessions']);
  const closed = after([{ type: 'showClosed', on: true }, { type: 'tick' }], state);
  assert.deepEqual(loads(closed.effects), ['reports?all=1', 'overview?since=3', 'reports?all=1', 'sessions']);
});

test('what the server says has changed is loaded, if it is shown', () => {
  const changed = (views) => ({ type: 'changed', views });
  assert.deepEqual(after([changed(['overview'])]).effects, [], 'the page is locked');
  const { state } = after([{ type: 'tab', tab: 'sessions' }], opened());
  assert.deepEqual(loads(after([changed(['sessions'])], state).effects), ['sessions']);
  assert.deepEqual(loads(after([changed(['reports', 'bans', 'audit'])], state).effects), ['reports']);
  assert.deepEqual(loads(after([changed(['overview', 'no such view'])], state).effects), ['overview?since=3']);
  assert.deepEqual(loads(after([{ type: 'showClosed', on: true }, changed(['reports'])], state).effects), ['reports?all=1', 'reports?all=1']);
});

test('samples are added, bounded, and begin again after a restart of the server', () => {
  const times = ({ samples }) => samples.map(({ at }) => at);
  assert.deepEqual(times(merge(null, overview(1, 3))), [1, 2, 3]);
  assert.deepEqual(times(merge(overview(1, 3), overview(3, 4))), [1, 2, 3, 4]);
  assert.deepEqual(times(merge(overview(1, 5), overview(6, 7))), [3, 4, 5, 6, 7]);
  assert.deepEqual(times(merge(overview(1, 5), overview(8, 9, 7))), [8, 9]);
});

test('an act is sent once, reports its result, and loads reports and bans', () => {
  const act = { kind: 'ban', report: 1, reason: 'rude', duration: '7d' };
  const sent = after([{ type: 'act', act }, { type: 'act', act: { kind: 'dismiss', report: 1 } }], opened());
  assert.deepEqual([sent.state.busy, sent.effects], [['report 1'], [{ do: 'act', act }]]);
  const { state, effects } = after([{ type: 'acted', act, data: { bans: [{ subject: 'b' }, { subject: '10.0.0.1' }] } }], sent.state);
  assert.deepEqual([state.busy, state.note.tone, state.note.subject, loads(effects)], [[], 'good', 'b, 10.0.0.1', ['reports', 'bans']]);
  assert.equal(after([{ type: 'closeNote' }], state).state.note, null);
});

test('a warning closes the report, and a person who would not see it leaves it open', () => {
  const act = { kind: 'warn', report: 1, text: 'Be kind.' };
  const sent = after([{ type: 'act', act }], opened());
  assert.deepEqual([sent.state.busy, sent.effects], [['report 1'], [{ do: 'act', act }]]);
  assert.equal(after([{ type: 'acted', act, data: { delivered: true } }], sent.state).state.note.tone, 'good');
  const { strings } = adminStringsFor(['en']);
  for (const [obstacle, sentence] of [['ignored', strings.admin.done.warningIgnored], ['notConnected', strings.admin.done.notWarned]]) {
    const { state, effects } = after([{ type: 'acted', act, data: { delivered: false, obstacle } }], sent.state);
    assert.deepEqual([state.note.tone, state.busy, loads(effects)], ['bad', [], ['reports', 'bans']]);
    assert.equal(noteText(state.note, strings.admin), sentence);
    assert.match(sentence, /no warning was sent/);
  }
});

test('an act that fails says why, and can be repeated', () => {
  const act = { kind: 'dismiss', report: 1 };
  const { state, effects } = after([{ type: 'act', act }, { type: 'actFailed', act, trouble: { text: 'It was closed.' } }], opened());
  assert.deepEqual([state.busy, state.note.tone, state.note.text, loads(effects)], [[], 'bad', 'It was closed.', ['reports']]);
  assert.equal(after([{ type: 'act', act }], state).effects.length, 1);
  const lift = { kind: 'lift', subject: 'b' };
  assert.equal(after([{ type: 'act', act: lift }, { type: 'actFailed', act: lift, trouble: 'wrong' }], opened()).state.phase, 'locked');
});

test('all open reports count, also those that are not among the newest', () => {
  assert.equal(initial().openCount, null);
  assert.equal(opened().openCount, 120);
});

test('arrow keys lead from tab to tab, and around', () => {
  const alone = tabsOf(opened());
  assert.deepEqual(['ArrowRight', 'ArrowLeft', 'Home', 'End', 'a'].map((key) => tabAfter('overview', key, alone)), ['reports', 'audit', 'overview', 'audit', null]);
  assert.equal(tabAfter('audit', 'ArrowRight', alone), 'overview');
});

const inCluster = () => after([{ type: 'loaded', what: 'overview', data: { ...overview(4, 5), node: 'n1' } }], opened()).state;
const nodes = { asked: 'n1', seenMsAgo: 300, nodes: [{ node: 'n1', life: 7, state: 'serving' }, { node: 'n2', life: 6, state: 'serving' }] };

test('a node of a cluster has a view of all nodes, and a server that is alone has none', () => {
  assert.equal(tabsOf(initial()).includes('nodes'), false);
  assert.equal(tabsOf(opened()).includes('nodes'), false);
  assert.equal(tabAfter('overview', 'ArrowRight', tabsOf(inCluster())), 'nodes');
  const shown = after([{ type: 'tab', tab: 'nodes' }, { type: 'loaded', what: 'nodes', data: nodes }, { type: 'changed', views: ['nodes', 'bans'] }], inCluster());
  assert.deepEqual(shown.state.nodes, nodes);
  assert.deepEqual(loads(shown.effects), ['nodes', 'nodes']);
  // It was started again without a cluster.
  const alone = after([{ type: 'loaded', what: 'overview', data: overview(1, 2, 9) }], shown.state).state;
  assert.equal(alone.tab, 'overview');
});

test('a node is drained when the operator has confirmed it, once', () => {
  const act = { kind: 'node', node: 'n2', state: 'draining' };
  const asked = after([{ type: 'ask', act }], inCluster());
  assert.deepEqual([asked.state.question, asked.effects], [act, []]);
  const no = after([{ type: 'answer', yes: false }, { type: 'answer', yes: true }], asked.state);
  assert.deepEqual([no.state.question, no.state.busy, no.effects], [null, [], []]);
  const yes = after([{ type: 'answer', yes: true }, { type: 'answer', yes: false }], asked.state);
  assert.deepEqual([yes.state.question, yes.state.busy, yes.effects], [null, ['node n2'], [{ do: 'act', act }]]);
  assert.deepEqual(after([{ type: 'ask', act }, { type: 'answer', yes: true }], yes.state).effects, [], 'it is on its way');
  const done = after([{ type: 'acted', act, data: { node: 'n2', requested: 'draining' } }], yes.state);
  assert.deepEqual([done.state.busy, done.state.note.tone, done.state.note.subject, loads(done.effects)], [[], 'good', 'n2', ['nodes']]);
  const failed = after([{ type: 'actFailed', act, trouble: { text: 'PostgreSQL does not answer.' } }], yes.state);
  assert.deepEqual([failed.state.note.tone, failed.state.note.text, loads(failed.effects)], ['bad', 'PostgreSQL does not answer.', ['nodes']]);
});

test('a page that is locked asks nothing', () => {
  const act = { kind: 'node', node: 'n2', state: 'draining' };
  assert.equal(after([{ type: 'ask', act }]).state.question, null);
  assert.equal(after([{ type: 'ask', act }, { type: 'lock' }], inCluster()).state.question, null);
});
