// The last rooms of this device, newest first. A guest's are kept in the guest's tab.
import { shelf } from './memory.js';

/** Enough to find the usual ones, on one screen of a phone. */
const maxRooms = 6;

/** @param {boolean} guest */
export function recentRooms(guest) {
  const kept = shelf(guest, 'confab.rooms');
  /** @returns {string[]} */
  const recall = () => {
    const { names } = kept.get();
    return Array.isArray(names) ? names.filter((name) => typeof name === 'string' && name !== '').slice(0, maxRooms) : [];
  };
  // Names that differ only in case name the same room.
  const others = (/** @type {string} */ name) => recall().filter((one) => one.toLowerCase() !== name.toLowerCase());
  return {
    recall,
    /** @param {string} name */
    remember: (name) => kept.set({ names: [name, ...others(name)].slice(0, maxRooms) }),
    /** @param {string} name */
    forget: (name) => kept.set({ names: others(name) }),
  };
}
