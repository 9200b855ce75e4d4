import assert from 'node:assert/strict';
import test from 'node:test';
import { personIdIn } from '../../app/nearby/state.js';
import { ann, bob, me, NearbyMachine } from './nearby-machine.mjs';

const row = (person, distance = 5) => ({ personId: person.personId, name: person.name, distance, busy: false });

test('going online sends the name and asks for the location, after agreeing to the rules', () => {
  const machine = new NearbyMachine({ form: { agreed: false } }).tell('connected', { resumed: false }).tell('enter');
  assert.deepEqual(machine.effects, []);
  machine.tell('form', { change: { agreed: true } }).tell('enter');
  assert.deepEqual(machine.effect('appear'), { do: 'appear', as: { name: 'Robin', visible: true, doNotDisturb: false, ringable: 'everyone' } });
  assert.equal(machine.state.kept.entered, true);
  assert.ok(machine.tell('self', { me }).wanted.includes('watchPosition'));
});

test('a rejected name returns to the first screen, with the reason', () => {
  const machine = new NearbyMachine().tell('connected', { resumed: false }).tell('enter').tell('appearRefused', { code: 'invalid_name' });
  assert.equal(machine.state.entered, false);
  assert.equal(machine.state.kept.entered, false);
  assert.equal(machine.state.trouble.code, 'invalid_name');
  assert.ok(machine.tell('form', { change: { name: 'Ann' } }).tell('enter').wanted.includes('appear'));
});

test('an empty name is allowed', () => {
  const machine = new NearbyMachine({ form: { name: '' } }).tell('connected', { resumed: false }).tell('enter');
  assert.equal(machine.effect('appear').as.name, '');
});

test('the location is not requested if the user does not want it', () => {
  const machine = new NearbyMachine().tell('keepPosition', { on: false }).tell('connected', { resumed: false }).tell('enter');
  assert.equal(machine.tell('self', { me }).state.list.is, 'off');
  assert.ok(!machine.wanted.includes('watchPosition'));
});

test('going online before the connection is ready takes effect when it is', () => {
  const machine = new NearbyMachine().tell('enter');
  assert.ok(!machine.wanted.includes('appear'));
  assert.ok(machine.tell('connected', { resumed: false }).wanted.includes('appear'));
});

test('a user who was online at the last visit is online again without pressing anything', () => {
  assert.ok(new NearbyMachine({ entered: true }).tell('connected', { resumed: false }).wanted.includes('appear'));
});

test('the list is watched once the server has a location, and not before', () => {
  const machine = new NearbyMachine().tell('connected', { resumed: false }).tell('enter').tell('self', { me });
  assert.deepEqual(machine.wanted.filter((what) => what !== 'remember'), ['askContacts', 'askLog', 'watchPosition']);
  machine.tell('position', { is: 'on' });
  assert.deepEqual(machine.effect('watch'), { do: 'watch', unit: 'mi', radius: 200, after: null });
  machine.tell('nearby', { people: [row(ann)], next: 'n1' });
  assert.deepEqual(machine.state.list.people, [row(ann)]);
  assert.deepEqual(machine.tell('position', { is: 'on' }).wanted, []);
});

test('a location that the server already has is used at once', () => {
  const machine = new NearbyMachine().tell('connected', { resumed: false }).tell('enter').tell('self', { me: { ...me, hasPosition: true } });
  assert.ok(machine.wanted.includes('watch'));
});

test('pages go farther and back, and a new radius starts at the first page', () => {
  const machine = new NearbyMachine().here().tell('nearby', { people: [row(ann)], next: 'n1' }).tell('page', { to: 'further' });
  assert.equal(machine.effect('watch').after, 'n1');
  machine.tell('nearby', { people: [row(bob)] }).tell('page', { to: 'further' });
  assert.deepEqual(machine.wanted, []);
  assert.equal(machine.tell('page', { to: 'nearer' }).effect('watch').after, null);
  machine.tell('nearby', { people: [row(ann)], next: 'n1' }).tell('page', { to: 'further' }).tell('radius', { radius: 5 });
  assert.deepEqual(machine.effect('watch'), { do: 'watch', unit: 'mi', radius: 5, after: null });
});

test('the other unit uses the radius at the same index of its table', () => {
  const machine = new NearbyMachine({ radius: 10 }).here().tell('unit', { unit: 'km' });
  assert.deepEqual(machine.effect('watch'), { do: 'watch', unit: 'km', radius: 16, after: null });
});

test('a hidden list is not watched, and is fetched again when shown', () => {
  const machine = new NearbyMachine().here().tell('nearby', { people: [row(ann)] }).tell('shown', { visible: false });
  assert.deepEqual(machine.wanted, ['unwatch']);
  assert.deepEqual(machine.tell('shown', { visible: true }).wanted, ['watch']);
  assert.equal(machine.state.list.people.length, 1);
});

test('deleting the location empties the list and stops the location watch', () => {
  const machine = new NearbyMachine().here().tell('nearby', { people: [row(ann)] }).tell('forgetPosition');
  assert.deepEqual(machine.wanted, ['remember', 'stopPosition', 'forgetPosition']);
  assert.equal(machine.state.list.is, 'off');
  assert.equal(machine.state.kept.position, false);
  assert.ok(machine.tell('usePosition').wanted.includes('watchPosition'));
});

test('people are found by id and by link, and the user’s own link is recognized', () => {
  assert.equal(personIdIn(`https://confab.example/nearby#person=${ann.personId}`), ann.personId);
  assert.equal(personIdIn(ann.personId.toUpperCase()), ann.personId);
  assert.equal(personIdIn(`${ann.personId}0`), null);
  const machine = new NearbyMachine().here().tell('find', { text: ` ${ann.personId} ` });
  assert.deepEqual(machine.effects, [{ do: 'find', personId: ann.personId }]);
  assert.equal(machine.tell('found', { person: null }).state.found.is, 'nobody');
  assert.equal(machine.tell('find', { text: 'Ann' }).state.found.is, 'bad');
  assert.equal(machine.tell('find', { text: me.personId }).state.found.is, 'self');
  assert.equal(machine.tell('find', { text: '' }).state.found.is, 'none');
});

test('an opened link is followed once, as soon as the user is online', () => {
  const machine = new NearbyMachine({ arrival: { find: ann.personId, link: null } }).tell('connected', { resumed: false }).tell('enter').tell('self', { me });
  assert.deepEqual(machine.effect('find'), { do: 'find', personId: ann.personId });
  assert.equal(machine.state.arrival.find, null);
});

test('an opened link code needs confirmation before linking', () => {
  const machine = new NearbyMachine({ arrival: { find: null, link: 'ABCD-EFGH' } }).tell('connected', { resumed: false }).tell('enter').tell('self', { me });
  assert.deepEqual(machine.state.question, { is: 'link', code: 'ABCD-EFGH' });
  assert.equal(machine.state.panel, 'settings');
  assert.deepEqual(machine.tell('agree').effects, [{ do: 'useLink', code: 'ABCD-EFGH' }]);
  assert.equal(machine.tell('agree').effects.length, 0);
});

test('linking by a code requests the other person’s contacts and calls', () => {
  const machine = new NearbyMachine().here().tell('log', { calls: [{ callId: 'old' }] }).tell('self', { me: { ...me, personId: 'f'.repeat(32) } });
  assert.ok(machine.wanted.includes('askContacts') && machine.wanted.includes('askLog'));
  assert.equal(machine.state.log.calls, null);
});

test('a code for another device disappears when it expires', () => {
  const machine = new NearbyMachine().here().tell('codeMade', { code: 'ABCD-EFGH', expiresInMs: 300_000 });
  assert.deepEqual(machine.state.code, { code: 'ABCD-EFGH', until: machine.now + 300_000 });
  const { after, event } = machine.effect('later');
  assert.equal(after, 300_000);
  machine.tell('codeOver', { code: 'another' });
  assert.ok(machine.state.code);
  assert.equal(machine.tell(event.type, event).state.code, null);
});

test('contacts change, appear and disappear while shown', () => {
  const machine = new NearbyMachine().here().tell('contacts', { people: [ann] });
  machine.tell('contactChanged', { person: { ...ann, online: false } });
  assert.equal(machine.state.contacts[0].online, false);
  machine.tell('contactAdded', { person: bob }).tell('contactRemoved', { personId: ann.personId });
  assert.deepEqual(machine.state.contacts, [bob]);
});

test('the call history grows by pages, and unseen missed calls are marked until shown', () => {
  const missed = { callId: 'm', direction: 'incoming', outcome: 'missed', person: ann, video: true, at: 1, seen: false };
  const machine = new NearbyMachine().here().tell('log', { calls: [missed], next: 'p2' });
  assert.equal(machine.state.missed, 1);
  assert.deepEqual(machine.tell('panel', { is: 'log' }).effect('seen'), { do: 'seen', calls: ['m'] });
  assert.equal(machine.state.missed, 0);
  assert.deepEqual(machine.tell('moreCalls').effects, [{ do: 'askLog', before: 'p2' }]);
  machine.tell('log', { calls: [{ ...missed, callId: 'older' }], before: 'p2' });
  assert.deepEqual(machine.state.log.calls.map(({ callId }) => callId), ['m', 'older']);
  assert.deepEqual(machine.tell('forgetCall', { callId: 'm' }).effects, [{ do: 'forgetCall', callId: 'm' }]);
  assert.equal(machine.state.log.calls.length, 1);
});

test('irreversible actions need confirmation', () => {
  const machine = new NearbyMachine().here().tell('ask', { question: { is: 'delete' } }).tell('unask').tell('agree');
  assert.deepEqual(machine.effects, []);
  assert.deepEqual(machine.tell('ask', { question: { is: 'delete' } }).tell('agree').effects, [{ do: 'deleteEverything' }]);
  machine.tell('ask', { question: { is: 'block', person: ann } }).tell('agree');
  assert.deepEqual(machine.effect('block'), { do: 'block', personId: ann.personId });
  assert.deepEqual(machine.state.kept.blockedNames, [[ann.personId, 'Ann']]);
});

test('deleted and unlinked devices return to the first screen, and going online reconnects', () => {
  for (const code of ['deleted', 'unlinked']) {
    const machine = new NearbyMachine().here().tell('closed', { code });
    assert.equal(machine.state.entered, false);
    assert.equal(machine.state.me, null);
    assert.ok(machine.wanted.includes('stopPosition'));
    assert.ok(machine.tell('enter').wanted.includes('connect'));
    assert.ok(machine.tell('connected', { resumed: false }).wanted.includes('appear'));
  }
});

test('retrying a closed connection starts over, with the location and the list', () => {
  const machine = new NearbyMachine().here().tell('nearby', { people: [row(ann)] }).tell('closed', { code: 'too_many_connections' });
  assert.ok(machine.wanted.includes('stopPosition'));
  assert.deepEqual(machine.tell('retryLink').wanted, ['connect']);
  machine.tell('connected', { resumed: false });
  assert.ok(machine.wanted.includes('appear'));
  machine.tell('self', { me: { ...me, hasPosition: true } });
  assert.ok(machine.wanted.includes('watch') && machine.wanted.includes('watchPosition'));
});

test('Go offline leaves the list, and the next visit starts at the first screen', () => {
  const machine = new NearbyMachine().here().tell('leave');
  assert.deepEqual(machine.wanted, ['leave', 'stopPosition', 'remember', 'focus']);
  assert.equal(machine.state.kept.entered, false);
});

test('the page does nothing on a server restart, because the SDK sends everything again', () => {
  const machine = new NearbyMachine().here().tell('reconnecting').tell('connected', { resumed: false }).tell('restarted');
  assert.deepEqual(machine.wanted, ['later']);
  assert.equal(machine.state.passing, 'back');
  assert.equal(machine.state.list.is, 'loading');
});

test('changed settings are sent to the server, and the server’s values are shown', () => {
  const machine = new NearbyMachine().here().tell('settings', { change: { doNotDisturb: true } });
  assert.deepEqual(machine.effect('set'), { do: 'set', change: { doNotDisturb: true } });
  assert.equal(machine.state.me.doNotDisturb, false);
  machine.tell('self', { me: { ...me, doNotDisturb: true } });
  assert.equal(machine.state.kept.doNotDisturb, true);
});

test('an unknown event throws', () => {
  assert.throws(() => new NearbyMachine().tell('nonsense'), /Unknown event/);
});
