import Cluster
import RTC
import SFU

extension NodeRelays {
    /// What other nodes must know to open relays to the media loops of this one.
    init(_ media: MediaPlane) {
        let digits = media.fingerprint.bytes.map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }
        let loops = media.udpPorts.map { port in
            media.relayAddresses.map { $0.transportAddress(port: UInt16(clamping: port)).description }
        }
        self.init(
            fingerprint: digits.joined(), loops: loops, versions: Router.relayVersion...Router.relayVersion)
    }
}
