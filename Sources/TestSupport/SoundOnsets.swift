/// Returns the times in seconds at which a beep begins after a quarter of a second of silence.
///
/// - Parameter samples: mono, 48,000 per second.
public func soundOnsets(_ samples: [Int16]) -> [Double] {
    var (onsets, silence): ([Double], Int) = ([], 48_000)
    for (index, sample) in samples.enumerated() {
        // A tenth of the beep's amplitude.
        guard abs(Int(sample)) > 1_600 else {
            silence += 1
            continue
        }
        if silence > 12_000 { onsets.append(Double(index) / 48_000) }
        silence = 0
    }
    return onsets
}
