// A client, its page and the server it connects to.
import assert from 'node:assert/strict';
import { Client } from '../../lib/signaling/client.js';
import { FakeClock } from './fake-clock.mjs';
import { FakeServer } from './fake-server.mjs';

/** @type {FakeServer} */
export let server;
/** @type {FakeClock} */
export let clock;
/** @type {Client} */
export let client;
/** @type {any[]} */
export let events;
/** @type {EventTarget} */
export let page;

/** A separate server, clock, page and client for each test. */
export function begin() {
  server = new FakeServer();
  clock = new FakeClock();
  page = new EventTarget();
  make();
}

/** Makes another client. @param {object} [options] */
export function make(options = {}) {
  client = new Client({ url: 'ws://test/v1/socket', WebSocket: server.WebSocket, clock, random: () => 1, page, ...options });
  events = [];
  for (const name of ['connected', 'reconnecting', 'expired', 'restarted', 'closed', 'identity', 'fault']) {
    client.on(name, (event) => events.push([name, event]));
  }
  return client;
}

export const names = () => events.map(([name]) => name);

/** @param {Promise<unknown>} promise @returns {Promise<any>} the rejection reason */
export const rejection = (promise) => promise.then(() => assert.fail('it was not rejected'), (error) => error);
