// Selects the speakers for incoming audio, in browsers that let a page choose them.
import { byId, show } from '../shared/dom.js';

/** @typedef {HTMLMediaElement & {sinkId?: string, setSinkId?: (deviceId: string) => Promise<void>}} Player */

/** Returns whether the page can select the speakers. If not, the system selects them. */
const canChoose = () => 'setSinkId' in HTMLMediaElement.prototype && typeof navigator.mediaDevices?.enumerateDevices === 'function';

export class Output {
  #picker = byId('speakers', HTMLSelectElement);
  /**
   * The id of the output device in use; empty for the system default. Differs from the device that the user chose
   * while that device is unplugged.
   */
  #current = '';

  /**
   * @param {import('./strings.js').Strings} strings
   * @param {import('../shared/memory.js').DeviceMemory} devices
   * @param {() => Iterable<Player>} players returns the media elements that play incoming audio
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

  /**
   * Lists the output devices in the picker, and uses the chosen one if it is connected, otherwise the system default.
   * Browsers reveal device names only after microphone access was granted.
   */
  async list() {
    if (!canChoose()) return;
    const all = await navigator.mediaDevices.enumerateDevices().catch(() => []);
    const outputs = all.filter(({ kind, deviceId }) => kind === 'audiooutput' && deviceId !== '');
    // Not every browser lists the system default among the devices.
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
      // Ignore the failure if another device was selected in the meantime. If the system default fails, there is no
      // other device to use.
      if (this.#current !== wanted || wanted === '') return;
      // The device was just unplugged: use the system default until the list of devices changes.
      this.#use('');
      this.#show();
    });
  }
}
