// Random orders of joining, leaving, rejoining, dropping and losing messages in a mesh of two to six members, in simulated time. In
// the end each sees all others. `CONFAB_MESH_ORDERS` sets how many orders are tried, `CONFAB_MESH_SEED` the first seed.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FakePeerConnection } from './fake-rtc.mjs';
import { MeshWire } from './mesh-wire.mjs';
import { seeded } from './random.mjs';

const orders = Number(process.env.CONFAB_MESH_ORDERS ?? 60);
const firstSeed = Number(process.env.CONFAB_MESH_SEED ?? 1);
/** Longer than a lost offer, a refused one, a restart and a new connection take one after the other. */
const limitMs = 180_000;

/** @param {FakePeerConnection[]} all */
const open = (all) => all.filter(({ connectionState }) => connectionState !== 'closed');

/** @param {MeshWire} wire @param {() => number} random */
async function live(wire, random) {
  const size = 2 + Math.floor(random() * 5);
  const pick = () => [...wire.members.values()][Math.floor(random() * wire.members.size)];
  for (let step = 0; step < 8; step += 1) {
    const choice = random();
    if (wire.members.size < size && choice < 0.5) wire.join();
    else if (wire.members.size === 0) wire.join();
    else if (choice < 0.65) {
      // Rejoining is joining under another id, at once.
      wire.leave(pick());
      if (random() < 0.7) wire.join();
    } else if (choice < 0.8) {
      const member = pick();
      wire.drop(member);
      wire.clock.setTimeout(() => wire.resume(member), random() * 8000);
    } else if (choice < 0.9) {
      const connections = open(FakePeerConnection.all);
      connections[Math.floor(random() * connections.length)]?.become(random() < 0.5 ? 'failed' : 'disconnected');
    } else wire.losses += Math.floor(random() * 4);
    await wire.pass(random() < 0.5 ? random() * 100 : random() * 6000);
  }
  while (wire.members.size < size) {
    wire.join();
    await wire.pass(random() < 0.5 ? 0 : random() * 300);
  }
}

/** @param {number} seed */
async function connects(seed) {
  const random = seeded(seed);
  const wire = new MeshWire(random);
  await live(wire, random);
  wire.losses = 0;
  let waited = 0;
  for (; waited < limitMs && wire.missing.length > 0; waited += 1000) await wire.pass(1000);
  assert.deepEqual(wire.missing, [], `seed ${seed}`);
  // And it stays so.
  await wire.pass(30_000);
  assert.deepEqual(wire.missing, [], `seed ${seed}, later`);
  const pairs = wire.members.size * (wire.members.size - 1);
  assert.equal(open(FakePeerConnection.all).length, pairs, `seed ${seed}: one connection for each pair`);
  for (const member of [...wire.members.values()]) wire.leave(member);
  await wire.pass(60_000);
  assert.equal(wire.clock.pending, 0, `seed ${seed}: timers are left`);
  return { waited, lost: wire.lost, members: pairs };
}

describe('A mesh', () => {
  test(`connects all pairs in ${orders} random orders`, async (t) => {
    let [longest, lost] = [0, 0];
    for (let seed = firstSeed; seed < firstSeed + orders; seed += 1) {
      const result = await connects(seed);
      longest = Math.max(longest, result.waited);
      lost += result.lost;
    }
    t.diagnostic(`seeds ${firstSeed} to ${firstSeed + orders - 1}: ${lost} messages lost, connected after ${longest / 1000} s at most`);
  });
});
