package org.wraith.readme

import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir
import java.io.OutputStream
import java.io.PrintStream
import java.nio.file.Path
import kotlin.io.path.Path
import kotlin.io.path.deleteIfExists
import kotlin.io.path.readBytes
import kotlin.io.path.writeBytes
import kotlin.random.Random
import kotlin.time.Duration.Companion.seconds

/** The examples of README.md and docs/SESSIONS.md, as written there. `cargo xtask bindings` makes source files of them. */
class ReadmeTest {
    @TempDir
    lateinit var folder: Path

    @Test
    fun `the example of the README transfers a file`() {
        val film = folder.resolve("film.mov")
        film.writeBytes(Random(7).nextBytes(1_000_000))
        val arrived = Path("Downloads/film.mov").apply { deleteIfExists() }
        val code = CompletableDeferred<String>()
        val terminal = System.out
        System.setOut(PrintStream(Lines { line -> codeIn(line)?.let(code::complete) }))
        try {
            runBlocking(Dispatchers.Default) {
                withTimeout(60.seconds) {
                    val sending = async { send(film.toString()) }
                    receive(code.await())
                    sending.await()
                }
            }
        } finally {
            System.setOut(terminal)
        }
        assertArrayEquals(film.readBytes(), arrived.readBytes())
    }

    @Test
    fun `the example of the sessions waits for its peer`() {
        assertFalse(responder().isMyTurn())
    }

    private fun codeIn(line: String) = line.removePrefix(BEFORE_CODE).takeIf { line.startsWith(BEFORE_CODE) }

    private companion object {
        const val BEFORE_CODE = "on the other machine: "
    }
}

/** Passes on each written line. */
private class Lines(private val shown: (String) -> Unit) : OutputStream() {
    private val line = StringBuilder()

    override fun write(byte: Int) {
        if (byte == '\n'.code) {
            shown(line.toString())
            line.clear()
        } else {
            line.append(byte.toChar())
        }
    }
}
