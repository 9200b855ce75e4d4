// The recent rooms on this device, newest first. A guest's rooms are stored in the guest's tab.
import { shelf } from './memory.js';
import { isSameRoom } from './same-room.js';

/** Maximum number of rooms: enough for those that a user visits often, and few enough for a phone's screen. */
const maxRooms = 6;

/**
 * @typedef {{name: string, mesh: boolean}} RecentRoom `mesh`: whether it was a mesh room. If the room has ended,
 *   opening its link creates it again with this mode
 */

/** @param {boolean} guest */
export function recentRooms(guest) {
  const kept = shelf(guest, 'confab.rooms');
  /** @returns {RecentRoom[]} */
  const recall = () => {
    const { names, mesh } = kept.get();
    const direct = Array.isArray(mesh) ? mesh : [];
    const known = Array.isArray(names) ? names.filter((name) => typeof name === 'string' && name !== '').slice(0, maxRooms) : [];
    return known.map((name) => ({ name, mesh: direct.includes(name) }));
  };
  const others = (/** @type {string} */ name) => recall().filter((one) => !isSameRoom(one.name, name));
  const keep = (/** @type {RecentRoom[]} */ rooms) => kept.set({
    names: rooms.map(({ name }) => name), mesh: rooms.filter(({ mesh }) => mesh).map(({ name }) => name),
  });
  return {
    recall,
    /** @param {string} name @param {boolean} mesh */
    remember: (name, mesh) => keep([{ name, mesh }, ...others(name)].slice(0, maxRooms)),
    /** @param {string} name */
    forget: (name) => keep(others(name)),
  };
}
