// Where the sound of the others is played, in browsers that let a page choose it.
import { byId, show } from '../shared/dom.js';

/** @typedef {HTMLMediaElement & {sinkId?: string, setSinkId?: (deviceId: string) => Promise<void>}} Player */

/** Whether the page can choose. Otherwise the system does. */
const canChoose = () => 'setSinkId' in HTMLMediaElement.prototype && typeof navigator.mediaDevices?.enumerateDevices === 'function';

export class Output {
  #picker = byId('speakers', HTMLSelectElement);
  /** The device to play on; empty for the system's. It may differ from the chosen one, which may be unplugged. */
  #current = '';

  /**
   * @param {import('./strings.js').Strings} strings
   * @param {import('../shared/memory.js').DeviceMemory} devices
   * @param {() => Iterable<Player>} players what plays now
   */
  constructor(strings, devices, players) {
    this.strings = strings;
    this.devices = devices;
    this.players = players;
    if (!canChoose()) return;
    this.#picker.addEventListener('change', () => {
      devices.remember({ speakers: this.#picker.value });
      this.#use(this.#picker.value);
    });
    navigator.mediaDevices.addEventListener?.('devicechange', () => this.list());
  }

  /** Offers the devices. Browsers name them only after the microphone was allowed. */
  async list() {
    if (!canChoose()) return;
    const all = await navigator.mediaDevices.enumerateDevices().catch(() => []);
    const outputs = all.filter(({ kind, deviceId }) => kind === 'audiooutput' && deviceId !== '');
    // Not every browser lists the system's choice among the devices.
    const system = outputs.some(({ deviceId }) => deviceId === 'default') ? [] : [new Option(this.strings.room.systemSpeakers, '')];
    show(/** @type {HTMLElement} */ (this.#picker.parentElement), system.length + outputs.length > 1);
    const wanted = this.devices.recall().speakers;
    const chosen = outputs.find(({ deviceId }) => deviceId === wanted)?.deviceId ?? '';
    this.#picker.replaceChildren(...system, ...outputs.map(({ deviceId, label }, index) => (
      new Option(label || this.strings.room.unnamedSpeakers(index + 1), deviceId))));
    this.#use(chosen);
    this.#show();
  }

  #show() {
    const isListed = [...this.#picker.children].some((option) => /** @type {HTMLOptionElement} */ (option).value === this.#current);
    this.#picker.value = isListed ? this.#current : 'default';
  }

  /** @param {string} deviceId */
  #use(deviceId) {
    this.#current = deviceId;
    for (const player of this.players()) this.apply(player);
  }

  /** @param {Player} player */
  apply(player) {
    if (!player.setSinkId || player.sinkId === this.#current) return;
    const wanted = this.#current;
    player.setSinkId(wanted).catch(() => {
      // A later choice stands. If the system's own device fails, there is no other to use.
      if (this.#current !== wanted || wanted === '') return;
      // Unplugged in this moment: the system's device plays, until the list of devices changes.
      this.#use('');
      this.#show();
    });
  }
}
