// The default interface of OpenTok's SDK for browsers: its looks, and its buttons with the keyboard.
import assert from 'node:assert/strict';
import test from 'node:test';
import { sharedBrowsers } from './browsers.mjs';
import { keepSocket, pretend, source } from './in-page.mjs';
import { opentokSite, projectOf } from './opentok-site.mjs';
import { looksOf } from './screenshots.mjs';
import { assertNothingThrown, serve } from './stranger.mjs';
import { NotYet } from './wait.mjs';

const { chromium } = sharedBrowsers();
const looks = looksOf('opentok');

/** Presses Tab until an element of this selector has the focus, and checks that it is shown, with an outline. */
async function tabTo(page, selector) {
  const passed = [];
  const focused = () => page.evaluate((one) => {
    const { activeElement: element } = document;
    return { isIt: element.matches(one), name: element.getAttribute('aria-label') ?? element.textContent.trim().slice(0, 20) };
  }, selector);
  for (let now = await focused(); !now.isIt; now = await focused()) {
    passed.push(now.name);
    assert.ok(passed.length < 20, `the focus never reached ${selector}; it passed ${passed.join(', ')}`);
    await page.press('Tab');
  }
  await page.waitFor(`${selector} shows that it has the focus`, () => {
    const { opacity, outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
    return opacity === '1' && outlineStyle === 'solid' && Number.parseFloat(outlineWidth) >= 2;
  });
}

/** Waits until the interface of an element shows this notice. */
function notices(page, selector, pattern) {
  return page.until(`${selector} shows ${pattern}`, async () => {
    const text = await page.evaluate((one) => document.querySelector(`${one} .OT_video-disabled-indicator`).textContent, selector);
    if (!pattern.test(text)) throw new NotYet(`it shows "${text}"`);
    return true;
  });
}

test('the default interface has no accessibility faults in any state, and works with the keyboard', async (t) => {
  const server = await serve(t);
  const [site, project, session] = await Promise.all([
    opentokSite(t), projectOf(server), server.command('session', 'create', '--media', 'routed'),
  ]);
  const open = async (name, as, color) => {
    const page = await (await chromium()).newPage({ label: as, color, scripts: [source(keepSocket)] });
    t.after(() => page.close());
    await page.goto(site(name, { server: server.url, session, key: project.key, token: project.token(session), as }));
    return page;
  };
  const ann = await open('look', 'Ann', 'red');
  const crowd = await open('crowd', 'Ben', 'white');
  await ann.waitFor('everyone is shown', 'document.querySelectorAll(".OT_subscriber:not(.OT_loading)").length === 3');
  await ann.waitFor('all sound is blocked', 'document.querySelectorAll(".OT_audio-blocked:not([hidden])").length === 3');
  await looks(t, ann, 'sound-blocked');

  // One press plays the sound of all.
  await tabTo(ann, '#subscriber .OT_audio-blocked');
  await ann.press('Enter');
  await ann.waitFor('all sound is played', '[...document.querySelectorAll(".OT_subscriber video")].every(({ muted, paused }) => !muted && !paused)');
  assert.equal(await ann.has('button', 'Play sound'), false);

  await tabTo(ann, '#publisher .OT_mute');
  await ann.press('Enter');
  await ann.find('button', 'Unmute microphone');
  await crowd.waitFor('Ann is muted', 'audioOf("Ann") === false');
  await tabTo(ann, '#subscriber .OT_mute');
  await ann.press('Space');
  await ann.find('button', 'Unmute sound from Ben');
  await looks(t, ann, 'muted');
  await ann.press('Space');
  await ann.find('button', 'Mute sound from Ben');
  await ann.find('button', 'Mute sound');

  const change = { type: 'session.subscriptionChanged', streamId: await ann.evaluate('subscribers.Ben.stream.streamId'), reason: 'slow' };
  await ann.evaluate(pretend, { ...change, videoPaused: false, warning: true });
  await notices(ann, '#subscriber', /may stop/);
  await looks(t, ann, 'warned');
  await ann.evaluate(pretend, { ...change, videoPaused: true, warning: false });
  await notices(ann, '#subscriber', /has stopped/);
  await ann.evaluate('OT.upgradeSystemRequirements()');
  await ann.find('alert');
  await looks(t, ann, 'stopped');
  assertNothingThrown(ann, crowd);
});
