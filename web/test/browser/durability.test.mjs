// Data survives kill -9, because the server commits every change before it answers with `ok`.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import test from 'node:test';
import { promisify } from 'node:util';
import { Guest } from './guest.mjs';
import { WebSocket } from './remote-control.mjs';
import { serve } from './stranger.mjs';
import { NotYet, until } from './wait.mjs';

const run = promisify(execFile);

async function confab(server, ...parts) {
  const { stdout } = await run(server.binary, [...parts, '--data-dir', server.dataFolder]);
  return stdout;
}

test('blocks, bans and reports survive kill -9 and a restart', async (t) => {
  const server = await serve(t, { CONFAB_ROULETTE_REMATCH_WAIT: '1ms', CONFAB_ROULETTE_SKIP_WINDOW: '0s' });
  const ann = await Guest.arrive(server.url);
  const bob = await Guest.arrive(server.url);
  const identities = [(await ann.isType('welcome')).identity, (await bob.isType('welcome')).identity];
  await ann.ask('roulette.start');
  await bob.ask('roulette.start');
  await ann.isType('roulette.matched');
  assert.equal((await ann.ask('roulette.report', { reason: 'rude' })).type, 'ok');
  assert.equal((await ann.ask('roulette.block')).type, 'ok');
  await confab(server, 'ban', 'add', '203.0.113.7', '--reason', 'test');
  await server.kill('SIGKILL');

  await server.start();
  assert.match(await confab(server, 'report', 'list'), /rude/);
  assert.match(await confab(server, 'ban', 'list'), /203\.0\.113\.7/);
  const [annAgain, bobAgain] = [await Guest.arrive(server.url, identities[0]), await Guest.arrive(server.url, identities[1])];
  await annAgain.isType('welcome');
  await bobAgain.isType('welcome');
  await annAgain.ask('roulette.start');
  await bobAgain.ask('roulette.start');
  // If the block were lost, the first two would be matched, and the third would have no partner.
  const cat = await Guest.arrive(server.url);
  await cat.isType('welcome');
  await cat.ask('roulette.start');
  const met = await cat.isType('roulette.matched');
  assert.equal((await annAgain.isType('roulette.matched')).matchId, met.matchId);
  for (const guest of [annAgain, bobAgain, cat]) guest.socket.close();
});

test('a client whose server was killed sends hello as before, and gets resume_failed with a full state', async (t) => {
  const server = await serve(t);
  const ann = await Guest.arrive(server.url);
  const welcome = await ann.isType('welcome');
  await server.kill('SIGKILL');
  await server.start();
  const again = await Guest.arrive(server.url, welcome.identity);
  again.socket.close();
  const back = new WebSocket(`${server.url.replace('http', 'ws')}/v1/socket`, 'confab.v1');
  const heard = [];
  back.on('message', (data) => heard.push(JSON.parse(String(data))));
  await new Promise((resolve) => { back.once('open', resolve); });
  back.send(JSON.stringify({
    type: 'hello', version: 1, identity: welcome.identity, resume: { secret: welcome.resume.secret, received: 0 },
  }));
  await until('a welcome', async () => {
    if (heard.length < 2) throw new NotYet(`heard ${heard.map(({ type }) => type)}`);
    return true;
  });
  assert.equal(heard[0].code, 'resume_failed');
  assert.equal(heard[1].resumed, false);
  assert.deepEqual(heard[1].state, { sessions: [], roulette: { state: 'idle' } });
  back.close();
});
