// The people of the picture in README.

/** @type {Record<string, import('./drawing.mjs').Person>} */
export const cast = {
  Maya: { skin: '#c98d63', hair: '#2a1a17', style: 'waves', top: '#e8b84e', clothes: 'sweater', place: 'window', wall: '#d9cdbb', mouth: 'laugh', lips: '#b8474a', lashes: true, tilt: -0.04 },
  Jonas: { skin: '#f0c3a0', hair: '#b98344', style: 'quiff', top: '#3f6f8f', clothes: 'shirt', place: 'books', wall: '#cfd8d2', mouth: 'laugh', beard: 'stubble', iris: '#4d7fa0', jaw: 0.9, tilt: 0.03 },
  Amara: { skin: '#7a4a31', hair: '#1e1412', style: 'curly', top: '#d9674f', clothes: 'tee', place: 'kitchen', wall: '#b9cfc6', mouth: 'talk', lips: '#9c3f46', lashes: true, earrings: '#e8b84e' },
  Kenji: { skin: '#e9bd92', hair: '#211d20', style: 'short', top: '#55616d', clothes: 'hoodie', place: 'brick', wall: '#b87357', mouth: 'smile', glasses: true, jaw: 0.7, tilt: -0.03 },
  Layla: { skin: '#e0ae86', hair: '#5f8f8b', style: 'scarf', top: '#3d4f63', clothes: 'blazer', place: 'sofa', wall: '#e6d5c3', mouth: 'smile', lips: '#b9545a', lashes: true, iris: '#6b4a2a', tilt: 0.04 },
  Rosa: { skin: '#eec4a4', hair: '#d4d0cb', style: 'bob', top: '#8a5f8c', clothes: 'sweater', place: 'garden', wall: '#ffffff', mouth: 'laugh', lips: '#b85a5c', glasses: true, old: true, iris: '#5b7a6a' },
  Sofia: { skin: '#f2cdb0', hair: '#7d4427', style: 'long', top: '#4f8a72', clothes: 'tee', place: 'books', wall: '#e4d3bf', mouth: 'laugh', lips: '#c4525a', lashes: true, iris: '#5c8a5f', tilt: 0.04 },
  Daniel: { skin: '#6b412c', hair: '#17110f', style: 'cropped', top: '#d9a441', clothes: 'hoodie', place: 'window', wall: '#b4c3c9', mouth: 'laugh', beard: 'full', jaw: 0.8 },
  Lena: { skin: '#f4cfb4', hair: '#d9a95c', style: 'bun', top: '#c9605a', clothes: 'hoodie', place: 'sofa', wall: '#c5d3cc', mouth: 'laugh', lips: '#c9565c', lashes: true, iris: '#5a86a8', headphones: '#3b4650', tilt: -0.03 },
  Omar: { skin: '#c8935f', hair: '#241815', style: 'quiff', top: '#37506e', clothes: 'shirt', place: 'garden', wall: '#ffffff', mouth: 'laugh', beard: 'full', jaw: 0.8, tilt: 0.03, scale: 0.86 },
};
