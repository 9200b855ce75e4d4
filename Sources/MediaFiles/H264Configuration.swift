/// The configuration of an H.264 decoder in a file, the AVCDecoderConfigurationRecord (ISO/IEC 14496-15 §5.3.3.1).
enum H264Configuration {
    /// The profiles that browsers send: Baseline, Main, Extended and High. All have 4:2:0 with 8 bits, which the record repeats
    /// for High.
    private static let profiles: Set<UInt8> = [66, 77, 88, 100]

    /// Returns the record for one sequence and one picture parameter set; nil if they are invalid or of another profile.
    static func record(sequence: [UInt8], picture: [UInt8]) -> [UInt8]? {
        guard sequence.count >= 4, !picture.isEmpty, profiles.contains(sequence[1]) else { return nil }
        guard sequence.count + picture.count <= WebMHeader.maxConfiguration - 16 else { return nil }
        // Lengths of four bytes, and one set of each kind.
        var bytes: [UInt8] = [1, sequence[1], sequence[2], sequence[3], 0xff, 0xe1]
        bytes += EBML.bigEndian(UInt64(sequence.count), count: 2) + sequence
        bytes += [1] + EBML.bigEndian(UInt64(picture.count), count: 2) + picture
        if sequence[1] == 100 { bytes += [0xfd, 0xf8, 0xf8, 0x00] }
        return bytes
    }

    /// Returns the first sequence parameter set of a record; nil if there is none.
    static func sequenceParameterSet(in record: [UInt8]) -> [UInt8]? {
        guard record.count > 8 else { return nil }
        let length = Int(record[6]) << 8 | Int(record[7])
        guard length > 0, 8 + length <= record.count else { return nil }
        return Array(record[8..<8 + length])
    }
}
