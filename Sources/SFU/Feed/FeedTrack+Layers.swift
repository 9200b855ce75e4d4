import RTC

/// Which layers of a track exist, how large they are, and what they cost.
extension FeedTrack {
    func area(_ layer: Int) -> Int { Int((layers[layer].size ?? Layer.guess(layer, among: layers)).area) }

    /// Returns one bit for each layer that the publisher sends or would send on request. If all layers are marked as
    /// missing, returns all of them.
    func availableLayers(now: MediaTime) -> UInt8 {
        var mask: UInt8 = 0
        for index in layers.indices where layers[index].isMissingUntil.map({ $0 <= now }) ?? true {
            mask |= 1 << UInt8(index)
        }
        return mask == 0 ? .max : mask
    }

    /// Returns one bit for each layer that is no larger than this one, or all bits if this layer does not exist.
    func layers(upTo layer: Int) -> UInt8 {
        guard layers.indices.contains(layer) else { return .max }
        var mask: UInt8 = 0
        for index in layers.indices where area(index) <= area(layer) { mask |= 1 << UInt8(index) }
        return mask
    }

    func smallestLayer(above: Int, upTo largest: Int, among available: UInt8) -> Int? {
        var best: Int?
        for index in layers.indices where available >> UInt8(index) & 1 == 1 {
            let area = area(index)
            guard area > above, area <= largest, best.map({ area < self.area($0) }) ?? true else { continue }
            best = index
        }
        return best
    }

    /// Returns the bitrate of a layer up to a temporal layer, as measured when the layer was last received. If it was
    /// never measured, estimates it from the size.
    func bitrate(_ layer: Int, upTo temporal: UInt8) -> Bitrate {
        if let bytes = layers[layer].rates.bytesPerSecond {
            return Bitrate(bitsPerSecond: Int64(bytes[Int(min(temporal, 3))]) * 8)
        }
        // Browsers use about this bitrate for a video of this size: 500 kbit/s for 640 × 360.
        return Bitrate(bitsPerSecond: Int64(area(layer)) * 2 + 40_000)
    }
}
