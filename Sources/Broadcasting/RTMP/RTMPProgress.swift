/// Reads what ffmpeg prints with `-progress`.
enum RTMPProgress {
    /// Returns how much media was sent in this run; nil for other lines, and before the first packet.
    static func sent(_ line: some StringProtocol) -> Duration? {
        let name = "out_time_us="
        guard line.hasPrefix(name), let microseconds = Int64(line.dropFirst(name.count)), microseconds >= 0 else {
            return nil
        }
        return .microseconds(microseconds)
    }
}
