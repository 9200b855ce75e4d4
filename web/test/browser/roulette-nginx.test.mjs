// Everything that two strangers do, and every way of leaving, once more through nginx with the configuration we tell people to
// use: a proxy may hold back frames, swallow closes, or not pass on who the client is.
process.env.CONFAB_TEST_FRONT = 'nginx';

await import('./roulette.test.mjs');
await import('./roulette-outages.test.mjs');
