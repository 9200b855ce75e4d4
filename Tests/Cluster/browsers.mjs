// Two Chromium browsers that talk in a room, for the rows of the cluster's test. Prints a line of JSON for each browser ten times a
// second: how many frames and audio packets have arrived so far. The page comes back by itself after an outage.
//
//   node Tests/Cluster/browsers.mjs ADDRESS NAME PORT ROOM    the page is http://NAME:PORT, at this address
//
// Ends when its standard input does.
import { setTimeout as pause } from 'node:timers/promises';
import { launchChromium } from '../../web/test/browser/chromium.mjs';
import { receivedMedia } from '../../web/test/browser/in-page.mjs';
import { PageError } from '../../web/test/browser/page.mjs';

const [address, name, port, room] = process.argv.slice(2);
const people = [{ name: 'Ann', color: 'red', tone: 440 }, { name: 'Bob', color: 'green', tone: 660 }];
const print = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

async function come({ name: person, color, tone }) {
  const browser = await launchChromium({ flags: [`--host-resolver-rules=MAP ${name} ${address}`] });
  const page = await browser.newPage({ label: person, color, tone, width: 640, height: 480 });
  await page.goto(`http://${name}:${port}/room/${room}`);
  await page.fill('textbox', 'Your name', person);
  await page.click('button', 'Join');
  await page.find('button', 'Leave');
  return { person, page };
}

/** Prints what has arrived, until this process ends. */
async function watch({ person, page }) {
  for (;;) {
    try {
      const { framesDecoded, audioPackets } = await page.evaluate(receivedMedia);
      print({ person, at: Date.now(), frames: framesDecoded, sound: audioPackets, status: await page.status() });
    } catch (error) {
      if (!(error instanceof PageError)) throw error;
      print({ person, at: Date.now(), frames: 0, sound: 0, status: error.message });
    }
    await pause(100);
  }
}

process.stdin.on('end', () => process.exit(0)).resume();
await Promise.all((await Promise.all(people.map(come))).map(watch));
