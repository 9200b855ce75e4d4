// Expect: sending 'buffer' risks causing data races
import CoreVideo

actor Encoder {
    func encode(_ buffer: CVPixelBuffer) {}
}

func send(_ buffer: CVPixelBuffer, to encoder: Encoder) async {
    await encoder.encode(buffer)
    print(buffer)
}
