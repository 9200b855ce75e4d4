// The scripts of the rules of media in `protocol/scripts`, and the constants that both SDKs share.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { advance, dueAt, eventOf, unstopped } from '../../lib/media/audio-fallback.js';
import * as estimate from '../../lib/media/estimate.js';
import * as side from '../../lib/media/media-side.js';
import { answerDelay, Negotiation } from '../../lib/media/negotiation.js';
import * as peer from '../../lib/media/peer.js';
import { maxEarlySubscribers } from '../../lib/media/relayed.js';
import { rejoinMs } from '../../lib/people/call.js';
import { maxRemembered } from '../../lib/people/calls.js';
import { maxBytes, maxLines } from '../../lib/rooms/room-chat.js';
import * as roomMedia from '../../lib/rooms/room-media.js';
import { replayBytes, replayLargeBytes, replayMessages } from '../../lib/signaling/link.js';
import { runScripts } from './script.mjs';

runScripts('fallback', (_, clock) => {
  let state = unstopped;
  let isTooSlow = false;
  /** @type {unknown} */
  let timer;
  /** @type {any[]} */
  const done = [];
  const words = /** @type {Record<string, string>} */ ({
    videoDisableWarning: 'warned', videoDisableWarningLifted: 'lifted', videoDisabled: 'stopped', videoEnabled: 'resumed',
  });
  const step = () => {
    const before = state;
    state = advance(state, clock.now(), isTooSlow);
    const event = eventOf(before, state);
    if (event) done.push({ [words[event.type]]: true });
    clock.clearTimeout(timer);
    const due = dueAt(state);
    if (due !== null) timer = clock.setTimeout(step, due - clock.now());
  };
  return {
    done,
    play(input) {
      isTooSlow = input.slow;
      step();
    },
  };
});

runScripts('negotiation', ({ polite = false }) => {
  const negotiation = new Negotiation(polite);
  /** @type {any[]} */
  const done = [];
  const tell = (/** @type {string} */ word) => done.push({ [word]: true });
  return {
    done,
    play(input, word) {
      const id = input[word] === 'own' ? negotiation.label.negotiationId : input[word] ?? undefined;
      const label = { negotiationId: id, offerNumber: input.number };
      switch (word) {
        case 'offer': return void done.push({ offer: negotiation.offer().offerNumber });
        case 'candidate': return void tell(negotiation.concerns(label) ? 'added' : 'ignored');
        case 'reply':
          if (!negotiation.isAnswer(label)) return void tell('ignored');
          negotiation.completed();
          return void tell('completed');
        default: {
          const decision = negotiation.decide(label, negotiation.isOffering);
          tell(decision);
          if (decision === 'renew') negotiation.reset();
          if (decision === 'renew' || decision === 'accept') negotiation.accepted(label);
        }
      }
    },
  };
});

test('The constants that both SDKs share are those of protocol/scripts', () => {
  assert.deepEqual({
    answerDelay: answerDelay(0), longestAnswerDelay: answerDelay(9),
    relayedDisconnected: peer.disconnectedMs, relayedFailed: peer.failedMs, relayedRestartPause: peer.restartAgainMs,
    relayedFirstOffer: peer.firstOfferMs, relayedConnect: peer.connectMs, earlySubscribers: maxEarlySubscribers,
    routedDisconnected: side.disconnectedMs, routedRestartPause: side.restartAgainMs, routedRestarts: side.maxRestarts,
    routedLongestPause: side.longestPauseMs, routedRetry: side.retryMs,
    estimateFresh: estimate.freshMs, estimateWait: estimate.waitMs, publishLongestPause: roomMedia.longestMs,
    chatLines: maxLines, chatBytes: maxBytes, rememberedCalls: maxRemembered, callRejoin: rejoinMs,
    replayMessages, replayBytes, replayLargeBytes,
  }, JSON.parse(readFileSync(new URL('../../../protocol/scripts/constants.json', import.meta.url), 'utf8')));
});
